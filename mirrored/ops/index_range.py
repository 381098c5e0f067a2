"""Whether indices are of elements that there are, which the host looks at before it uses them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Check
from mirrored.ops.spec import INDICES, TENSORFLOW_NAMES, Shape, TensorSpec, shape_text

_UNSIGNED = {4: np.uint32, 8: np.uint64}


def check_index_dtype(op_name: str, indices: TensorSpec, attr: str = "Tindices") -> None:
    """Raise InvalidArgumentError, in TensorFlow's words, unless these can be indices."""
    if indices.dtype not in INDICES:
        raise InvalidArgumentError(
            f"Value for attr '{attr}' of {TENSORFLOW_NAMES[indices.dtype]} is not in the list of "
            f"allowed values: int32, int64 [Op:{op_name}]"
        )


def check_of_range(
    indices: Any, size: int, refuse: Callable[[tuple[Any, ...]], None]
) -> Check | None:
    """Return what looks for an index outside [0, size), and calls `refuse` with its place."""
    # Negative ones are the largest of all where the same bits have no sign. To find where the
    # largest is takes a third of the time of `max`.
    bits = indices.view(_UNSIGNED[indices.itemsize])
    place_of_largest, at = bits.argmax, bits.item

    def check() -> None:
        if at(place_of_largest()) >= size:
            refuse(_first_place((indices < 0) | (indices >= size)))

    return check if indices.size else None


def check_of_ranges(
    indices: Any, sizes: Shape, refuse: Callable[[tuple[Any, ...]], None]
) -> Check | None:
    """Return the same for indices of several axes each, which are the last axis of `indices`."""
    if len(sizes) == 1:
        return check_of_range(indices, sizes[0], lambda place: refuse(place[:-1]))
    bits = indices.view(_UNSIGNED[indices.itemsize]).reshape(-1, len(sizes))

    def check() -> None:
        if (bits.max(axis=0) >= sizes).any():
            refuse(_first_place(((indices < 0) | (indices >= sizes)).any(axis=-1)))

    return check if indices.size else None


def _first_place(wrong: Any) -> tuple[Any, ...]:
    return tuple(int(index) for index in np.unravel_index(np.argmax(wrong), wrong.shape))


def index_text(place: Shape) -> str:
    """Return how errors name one of the indices."""
    return f"indices{shape_text(place)}" if place else "indices"
