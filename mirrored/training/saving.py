"""A model's weights to a file and back, under names that do not depend on how it was put together.

Names are places in the model and kinds of layers, so any model of the same layers can read them.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mirrored._files import PathName
from mirrored.layers import Layer
from mirrored.training.weights_file import load_tensors, save_tensors
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.training.network import Network

Item = TypeVar("Item")


def save_weights(model: "Network", filepath: PathName, overwrite: bool) -> None:
    """Write a model's weights; `Model.save_weights` says what the arguments mean."""
    if not is_ready(model):
        raise ValueError(
            f"You are saving a model that has not yet been built, {model.name!r}. Try building "
            "the model first by calling it on some data or by using `build()`."
        )
    if not overwrite and os.path.exists(filepath):
        raise FileExistsError(
            f"There is a file at {os.fspath(filepath)!r} already. Pass overwrite=True to replace "
            "it."
        )
    named = named_weights(model)
    save_tensors(filepath, {key: np.asarray(each.numpy()) for key, each in named.items()})


def load_weights(model: "Network", filepath: PathName) -> None:
    """Set a model's weights; `Model.load_weights` says what the arguments mean."""
    if not is_ready(model):
        raise ValueError(
            f"You are loading weights into a model that has not yet been built, {model.name!r}. "
            "Try building the model first by calling it on some data or by using `build()`."
        )
    named = named_weights(model)
    loaded = load_tensors(filepath, {key: (each.shape, each.dtype) for key, each in named.items()})
    by_variable = {id(named[key]): value for key, value in loaded.items()}
    model.set_weights([by_variable[id(each)] for each in model.weights])


def is_ready(layer: Layer) -> bool:
    """Return whether all weights are there: the layer was run, or each one inside it built.

    Args:
        layer: A model or another layer.
    """
    return layer.built and (
        layer._output_shape is not None or all(inner.built for inner in layer._walk())
    )


def named_weights(layer: Layer) -> dict[str, Variable]:
    """Return the weights, each once, under names that another layer of the same parts gives.

    Args:
        layer: A model or another layer that is ready.
    """
    return named_by_place(
        (f"{place(index, inner)}.{leaf_name(variable)}", variable)
        for index, inner in enumerate(layer._walk())
        for variable in inner._own_weights()
    )


def place(index: int, layer: object) -> str:
    """Return what names begin with that belong to a layer.

    Args:
        index: How many layers of the model come before it.
        layer: The layer.
    """
    return f"{index}.{type(layer).__name__.lower()}"


def leaf_name(variable: Variable) -> str:
    """Return a variable's own name, without those of the layer or optimizer that it is in.

    Args:
        variable: The variable.
    """
    return variable.name.removesuffix(":0").rpartition("/")[2]


def named_by_place(pairs: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    """Return things by name, each once; a name that is taken gets a number.

    Args:
        pairs: Names and things.

    Example:
        >>> a, b = object(), object()
        >>> list(named_by_place([("x", a), ("x", b), ("y", a)]))
        ['x', 'x_1']
    """
    named: dict[str, Item] = {}
    found: set[int] = set()
    for name, item in pairs:
        if id(item) in found:  # Shared with a layer before.
            continue
        found.add(id(item))
        key, number = name, 0
        while key in named:  # A layer may give two of its weights one name.
            number += 1
            key = f"{name}_{number}"
        named[key] = item
    return named
