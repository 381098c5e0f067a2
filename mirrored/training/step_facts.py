"""What a step works on, in lines that are the same on all workers of one program."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored import _nest
from mirrored.distribute.distributed_variables import MirroredVariable
from mirrored.layers.layer import walk_with
from mirrored.ops.spec import TensorSpec
from mirrored.serialization.configs import serialize_keras_object
from mirrored.training.compilation import COMPILED
from mirrored.training.model_state import is_model
from mirrored.training.run_plan import optimizers_of

if TYPE_CHECKING:
    from mirrored.training.model import Model

# Parts of configurations that may differ: a worker may number layers without weights differently.
_LEFT_OUT = ("name", "module", "registered_name", "build_config")


def facts_of(model: "Model", size: int, specs: Iterable[TensorSpec]) -> dict[str, list[str]]:
    """Return what a step of a worker works on; `facts_of_graph` says what it is made of.

    Args:
        model: The model.
        size: How many examples the global batch has.
        specs: The shapes and dtypes of an example's arrays.
    """
    layers = (layer for layer, _ in walk_with(model, ()) if not is_model(layer))
    compilation = model.__state__.compilation
    compiled = zip(COMPILED, () if compilation is None else compilation.given, strict=False)
    return {
        "batches": [f"{size} examples", *(f"{spec.dtype.name} {spec.shape}" for spec in specs)],
        "variables": [
            f"{v.name} {tuple(v.shape)} {v.dtype.name} trainable={v.trainable}"
            for v in model.variables
        ],
        "settings of optimizers": _settings_of_optimizers(model),
        "settings of layers": [line for layer in layers for line in _settings(layer)],
        "settings of losses and metrics": [
            line
            for name, value in compiled
            for leaf in _nest.flatten(value)
            for line in _settings(leaf, name)
        ],
    }


def values_of(model: "Model") -> dict[str, list[str]]:
    """Return the settings of optimizers and what variables hold, in few words each.

    Slots are left out, which are as many again, but for the optimizers' own numbers.

    Args:
        model: The model.
    """
    own = (variable for optimizer in optimizers_of(model) for variable in optimizer.variables)
    held = [*model.variables, *(variable for variable in own if variable.shape == ())]
    mirrored = [variable for variable in held if isinstance(variable, MirroredVariable)]
    return {
        "settings of optimizers": _settings_of_optimizers(model),
        "values of variables": [f"{v.name} (check {_check(v):08x})" for v in mirrored],
    }


def _check(variable: MirroredVariable) -> int:
    array = np.ascontiguousarray(variable.copies[0].numpy()).reshape(-1)
    return zlib.crc32(array.view(np.uint8).data)


def _settings_of_optimizers(model: "Model") -> list[str]:
    rules = (rule for optimizer in optimizers_of(model) for rule in optimizer.within)
    return [line for rule in rules for line in _settings(rule)]


def _settings(thing: Any, place: str | None = None) -> Iterator[str]:
    """Return a line per value in the configuration of an object; its type where it has none."""
    name = type(thing).__name__ if place is None else place
    try:
        config = serialize_keras_object(thing)
    except Exception:  # A lambda, for example, or whatever a user's `get_config` raises.
        config = type(thing).__name__
    return _leaves(name, config)


def _leaves(place: str, config: Any) -> Iterator[str]:
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key not in _LEFT_OUT:
                yield from _leaves(place if key == "config" else f"{place}.{key}", value)
    elif isinstance(config, list | tuple):
        for i, value in enumerate(config):
            yield from _leaves(f"{place}[{i}]", value)
    else:
        yield f"{place} = {config!r}"
