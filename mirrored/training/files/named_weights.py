"""Names of a model's weights that do not depend on how it was put together.

They are places in the model and kinds of layers, so any model of the same layers gives them.
"""

from collections.abc import Iterable
from typing import TypeVar

from mirrored.layers.layer import Layer, own_weights
from mirrored.variables import Variable

Item = TypeVar("Item")


def named_weights(layers: Iterable[Layer]) -> dict[str, Variable]:
    """Return the weights, each once, under names that another layer of the same parts gives.

    Args:
        layers: The layer and all inside it, as `walk` yields them.
    """
    return named_by_place(
        (f"{place(index, inner)}.{leaf_name(variable)}", variable)
        for index, inner in enumerate(layers)
        for variable in own_weights(inner)
    )


def place(index: int, layer: object) -> str:
    """Return what names begin with that belong to a layer."""
    return f"{index}.{type(layer).__name__.lower()}"


def leaf_name(variable: Variable) -> str:
    """Return a variable's own name, without those of the layer or optimizer that it is in."""
    return variable.name.removesuffix(":0").rpartition("/")[2]


def named_by_place(pairs: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    """Return things by name, each once; a name that is taken gets a number."""
    named: dict[str, Item] = {}
    seen: set[int] = set()
    for name, item in pairs:
        if id(item) in seen:  # Shared with a layer before.
            continue
        seen.add(id(item))
        key, number = name, 0
        while key in named:  # A layer may give two of its weights one name.
            number += 1
            key = f"{name}_{number}"
        named[key] = item
    return named
