"""A model's weights to a file and back, under names that do not depend on how it was put together.

Names are places in the model and kinds of layers, so any model of the same layers can read them.
"""

import os
from typing import TYPE_CHECKING

import numpy as np

from mirrored._files import PathName
from mirrored.training.weights_file import load_tensors, save_tensors
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.training.network import Network


def save_weights(model: "Network", filepath: PathName, overwrite: bool) -> None:
    """Write a model's weights; `Model.save_weights` says what the arguments mean."""
    if not _is_ready(model):
        raise ValueError(
            f"You are saving a model that has not yet been built, {model.name!r}. Try building "
            "the model first by calling it on some data or by using `build()`."
        )
    if not overwrite and os.path.exists(filepath):
        raise FileExistsError(
            f"There is a file at {os.fspath(filepath)!r} already. Pass overwrite=True to replace "
            "it."
        )
    named = _named_weights(model)
    save_tensors(filepath, {key: np.asarray(each.numpy()) for key, each in named.items()})


def load_weights(model: "Network", filepath: PathName) -> None:
    """Set a model's weights; `Model.load_weights` says what the arguments mean."""
    if not _is_ready(model):
        raise ValueError(
            f"You are loading weights into a model that has not yet been built, {model.name!r}. "
            "Try building the model first by calling it on some data or by using `build()`."
        )
    named = _named_weights(model)
    loaded = load_tensors(filepath, {key: (each.shape, each.dtype) for key, each in named.items()})
    by_variable = {id(named[key]): value for key, value in loaded.items()}
    model.set_weights([by_variable[id(each)] for each in model.weights])


def _is_ready(model: "Network") -> bool:
    """Whether all weights are there: the model was run, or each of its layers built."""
    return model.built and (
        model._output_shape is not None or all(layer.built for layer in model._walk())
    )


def _named_weights(model: "Network") -> dict[str, Variable]:
    """Return the weights, each once, under names that another model of the same layers gives."""
    named: dict[str, Variable] = {}
    found: set[int] = set()
    for index, layer in enumerate(model._walk()):
        for variable in layer._own_weights():
            if id(variable) in found:  # Shared with a layer before.
                continue
            found.add(id(variable))
            leaf = variable.name.removesuffix(":0").rpartition("/")[2]
            key = name = f"{index}.{type(layer).__name__.lower()}.{leaf}"
            number = 0
            while key in named:  # A layer may give two of its weights one name.
                number += 1
                key = f"{name}_{number}"
            named[key] = variable
    return named
