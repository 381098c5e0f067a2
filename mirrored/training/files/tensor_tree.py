"""Names of a model's weights by place and kind of layer, and the comparison of workers' files.

The names do not depend on how a model was put together: any model of the same layers gives them.
"""

import zlib
from collections.abc import Iterable
from typing import Any, TypeVar

from mirrored._files import PathName
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


_PIECE = 1 << 22


def check_same_file(path: PathName | None, owners: Iterable[Any], action: str) -> None:
    """Raise where workers would read other files, before anything changes.

    All of them call it. It says nothing where what is read for belongs to this process alone.

    Args:
        path: The file; None: there is none to read.
        owners: What is read for: those of models and variables count that workers share.
        action: What is done then, for errors.

    Raises:
        WorkerError: One has no such file, or it has other bytes there.
    """
    for owner in owners:
        strategy = getattr(owner, "distribute_strategy", None) or getattr(owner, "strategy", None)
        if strategy is not None and strategy.is_shared:
            strategy.check_alike({"files": [_fingerprint(path)]}, action)
            return


def _fingerprint(path: PathName | None) -> str:
    if path is None:
        return "none to read"
    checksum = size = 0
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                checksum, size = zlib.crc32(piece, checksum), size + len(piece)
    except (OSError, TypeError, ValueError) as error:
        return f"none that can be read ({type(error).__name__})"
    return f"one of {size} bytes (check {checksum:08x})"
