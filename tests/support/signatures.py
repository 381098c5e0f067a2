"""The parameters of TensorFlow's functions, classes and methods, for any module with its names.

What signatures.json has is TensorFlow 2.21's and Keras 3.15's. Where they are installed,
`python tests/support/signatures.py` writes it anew.
"""

import enum
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
from extras import WRAPPERS

FILE = Path(__file__).with_suffix(".json")
# Modules, and classes for their methods.
HOMES = """
tf tf.autodiff tf.config tf.config.experimental tf.data tf.data.experimental tf.debugging
tf.distribute tf.distribute.experimental tf.dtypes tf.errors tf.experimental tf.experimental.dlpack
tf.experimental.numpy tf.experimental.numpy.random
tf.keras tf.keras.activations tf.keras.callbacks tf.keras.datasets.boston_housing
tf.keras.datasets.california_housing tf.keras.datasets.cifar10 tf.keras.datasets.cifar100
tf.keras.datasets.fashion_mnist tf.keras.datasets.imdb tf.keras.datasets.mnist
tf.keras.datasets.reuters
tf.keras.constraints tf.keras.initializers tf.keras.layers
tf.keras.losses tf.keras.metrics tf.keras.mixed_precision tf.keras.optimizers tf.keras.ops
tf.keras.random tf.keras.regularizers tf.keras.tree tf.keras.utils tf.keras.wrappers
tf.image tf.keras.ops.image tf.linalg tf.math tf.nest tf.nn tf.random
tf.random.experimental tf.summary tf.summary.experimental tf.test tf.train tf.GradientTape
tf.IndexedSlices tf.Module tf.Tensor tf.TensorShape tf.TensorSpec tf.Variable tf.data.Dataset
tf.data.Iterator tf.distribute.ReplicaContext tf.distribute.Strategy
tf.distribute.DistributedIterator tf.experimental.Optional tf.keras.Model
tf.keras.callbacks.Callback tf.keras.layers.Layer tf.keras.losses.Loss tf.keras.metrics.Metric
tf.keras.optimizers.Optimizer tf.random.Generator tf.train.Checkpoint tf.train.CheckpointManager
"""
Signatures = dict[str, dict[str, str]]


def described(value: Any) -> str | None:
    """Return the parameters of a function, or of a class, as text; None: Python does not know."""
    method = inspect.isclass(value)
    if method and (value.__init__ is object.__init__ or issubclass(value, enum.Enum)):
        return None
    try:
        signature = inspect.signature(value.__init__ if method else value)
    except (TypeError, ValueError):
        return None
    parameters = [
        each.replace(annotation=each.empty, default=_shown(each.default))
        for each in list(signature.parameters.values())[method:]
    ]
    return str(inspect.Signature(parameters))


class _As:
    """A default that is shown as some text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shown(default: Any) -> Any:
    """Return a default that reads the same whichever library it is from."""
    if isinstance(default, enum.Enum):
        return _As(default.name)
    if type(default).__name__ == "DType" or isinstance(default, np.dtype):
        return _As(default.name)
    if default is inspect.Parameter.empty or isinstance(default, str | int | float | None):
        return default
    if isinstance(default, tuple | list | dict) and not default:
        return default
    return _As(getattr(default, "__name__", "..."))


def signatures_of(root: Any) -> Signatures:
    """Return the parameters of what a module has that has TensorFlow's names, by its home in it."""
    found: Signatures = {}
    for home in HOMES.split():
        place = root
        for part in home.split(".")[1:]:
            place = getattr(place, part, None)
        members = {} if place is None else {name: _member(place, name) for name in _names(place)}
        texts = {name: described(value) for name, value in members.items() if callable(value)}
        found[home] = {name: text for name, text in sorted(texts.items()) if text is not None}
    return found


def _names(place: Any) -> list[str]:
    if place.__name__ == WRAPPERS:
        return []
    late = () if inspect.isclass(place) else inspect.get_annotations(place)
    return [name for name in {*dir(place), *late} if not name.startswith("_")]


def _member(place: Any, name: str) -> Any:
    value = getattr(place, name, None)
    return None if inspect.ismodule(value) else value


def main() -> None:
    """Write TensorFlow's."""
    found = signatures_of(importlib.import_module("tensorflow"))
    FILE.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
