"""From indices along several axes to rows of a matrix, which is what gathers and scatters move."""

import math
from typing import Any

from mirrored.errors import InvalidArgumentError
from mirrored.ops.creation import count_up_into
from mirrored.ops.index_range import check_of_ranges, index_text
from mirrored.ops.op import Check, Op, register
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import Shape, TensorSpec, bool_, int64, shape_text
from mirrored.ops.tensor import Tensor

_MOST_AXES = 7  # As in TensorFlow; the kernel of cards has room for one more.

# From indices of several axes, which are the last axis, to rows of a matrix: of one for each of a
# batch of indices, and for each of those `outer` ones. What is outside becomes -1, a row of nobody.


def _infer_flat(
    indices: TensorSpec,
    *,
    sizes: Shape,
    batch: Shape,
    outer: int,
    ignore: bool,
    op: str,
) -> TensorSpec:
    count = math.prod(indices.shape[len(batch) : -1])
    return TensorSpec((math.prod(batch), outer, count), int64)


def _flat_workspace(
    indices: TensorSpec, *, batch: Shape, outer: int, ignore: bool, **_: Any
) -> tuple[TensorSpec, ...]:
    rows = math.prod(indices.shape[:-1])
    masks = [TensorSpec((rows,), bool_)] * (2 * ignore)
    return TensorSpec((math.prod(batch) * outer,), int64), *masks


def _flat(
    xp: Any,
    out: Any,
    indices: Any,
    *,
    sizes: Shape,
    batch: Shape,
    outer: int,
    ignore: bool,
    op: str,
    workspace: tuple[Any, ...],
) -> None:
    if not out.size:
        return
    matrices, *masks = workspace
    count_up_into(xp, matrices)
    xp.copyto(out, matrices.reshape(math.prod(batch), outer, 1))
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
    indices: Any, *, sizes: Shape, batch: Shape, outer: int, ignore: bool, op: str
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


FLAT_INDICES = register(
    Op(
        name="FlatIndices",
        infer=_infer_flat,
        kernel=_flat,
        dtypes=frozenset({int64}),
        workspace=_flat_workspace,
        validate=_check_flat,
    )
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
        batch: Leading axes, each element of which has so many rows of its own.
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
