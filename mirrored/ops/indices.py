"""Indices: whether they are of elements that there are, and as rows of a matrix.

Rows of a matrix are what gathers and scatters along several axes move.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.creation import count_up_into
from mirrored.ops.op import Check, define_op
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import INDICES, TENSORFLOW_NAMES, Shape, TensorSpec, bool_, int64, shape_text
from mirrored.ops.tensor import Tensor

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


_MOST_AXES = 7  # As in TensorFlow; the kernel of cards has room for one more.

# From indices of several axes, which are the last axis, to rows of a matrix: of one for each of a
# batch of indices, and for each of those `outer` ones. What is outside becomes -1, a row of nobody.


def _infer_flat(indices: TensorSpec, *, batch: Shape, outer: int, **_: Any) -> TensorSpec:
    count = math.prod(indices.shape[len(batch) : -1])
    return TensorSpec((math.prod(batch), outer, count), int64)


def _flat_workspace(
    indices: TensorSpec, *, batch: Shape, outer: int, ignore: bool, **_: Any
) -> tuple[TensorSpec, ...]:
    rows = math.prod(indices.shape[:-1])
    masks = [TensorSpec((rows,), bool_)] * (2 * ignore)
    return TensorSpec((math.prod(batch) * outer,), int64), *masks


def _flat(
    xp: Any, out: Any, indices: Any, *, workspace: Any, sizes: Shape, ignore: bool, **attrs: Any
) -> None:
    if not out.size:
        return
    matrices, *masks = workspace
    count_up_into(xp, matrices)
    xp.copyto(out, matrices.reshape(math.prod(attrs["batch"]), attrs["outer"], 1))
    columns = indices.reshape(len(out), 1, -1, len(sizes))
    for axis, size in enumerate(sizes):
        xp.multiply(out, size, out=out)
        xp.add(out, columns[..., axis], out=out)
    for axis, size in enumerate(sizes if ignore else ()):
        below, beyond = (mask.reshape(columns.shape[:-1]) for mask in masks)
        xp.less(columns[..., axis], 0, out=below)
        xp.greater_equal(columns[..., axis], size, out=beyond)
        xp.logical_or(below, beyond, out=below)
        xp.copyto(out, -1, where=below)


def _check_flat(
    indices: Any, *, sizes: Shape, batch: Shape, ignore: bool, op: str, **_: Any
) -> Check | None:
    shape = (*batch, *sizes)

    def refuse(place: tuple[Any, ...]) -> None:
        index, label = [*place[: len(batch)], *indices[place].tolist()], index_text(place)
        if op.startswith(("GatherV2", "ResourceScatter")):  # They take one index each.
            raise InvalidArgumentError(f"{label} = {index[-1]} is not in [0, {sizes[0]}) [Op:{op}]")
        raise InvalidArgumentError(
            f"{label} = {index} does not index into shape {shape_text(shape)} [Op:{op}]"
        )

    return None if ignore or not sizes else check_of_ranges(indices, sizes, refuse)


FLAT_INDICES = define_op(
    name="FlatIndices",
    infer=_infer_flat,
    kernel=_flat,
    dtypes=frozenset({int64}),
    workspace=_flat_workspace,
    validate=_check_flat,
)


def flat_indices(
    indices: Tensor,
    sizes: Shape,
    *,
    op: str,
    batch: Shape = (),
    outer: int = 1,
    ignore: bool = False,
) -> Tensor:
    """Return the rows of a matrix that indices of several axes mean, as a vector of int64.

    Args:
        indices: Of shape (*batch, ..., axes).
        sizes: The sizes of the axes.
        op: What errors call it.
        batch: Leading axes; each of their elements has its own rows.
        outer: How many times as many rows it has, in each of which the indices mean one.
        ignore: Whether what is outside becomes -1; otherwise it is refused where the host sees it.
    """
    if len(sizes) > _MOST_AXES:
        raise InvalidArgumentError(
            f"Only indices.shape[-1] values between 1 and {_MOST_AXES} are currently supported. "
            f"Requested rank: {len(sizes)} [Op:{op}]"
        )
    flat = FLAT_INDICES(
        cast(indices, int64), sizes=sizes, batch=batch, outer=outer, ignore=ignore, op=op
    )
    return RESHAPE(flat, shape=(flat.size,))
