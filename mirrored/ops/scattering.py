"""Rows brought together by places: sums, products and extremes of those that have one place.

Rows of a place are taken in their order, on every device, so the bits are always the same.
"""

import functools
import math
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.gathering import GATHER
from mirrored.ops.index_range import check_index_dtype
from mirrored.ops.op import Check, Grads, Op, OpCall, register
from mirrored.ops.spec import NUMBERS, TensorSpec, int64, shape_text
from mirrored.ops.tensor import Tensor

_CHUNK = 1 << 14  # Elements at a time, whose places fit in a core's own cache.
_WIDE = 512  # From so many elements on, a row is added faster by itself than by its elements.


def _combine(ufunc: Any, out: Any, places: Any, rows: Any, scratch: Any) -> None:
    """Combine rows with those of a matrix that they belong to, one after the other.

    Args:
        ufunc: What combines two of them.
        out: The matrix.
        places: For each row its place in `out`; below 0: none.
        rows: As many rows.
        scratch: For the places of some elements.
    """
    if places.size and places.min() < 0:
        kept = places >= 0
        places, rows = places[kept], rows[kept]
    width = rows.shape[1]
    if width >= _WIDE:
        for place, row in zip(places.tolist(), rows, strict=True):
            ufunc(out[place], row, out=out[place])
    elif rows.size:
        # NumPy takes a third of the time for places of elements that it takes for those of rows.
        elements, columns, some = out.reshape(-1), np.arange(width), _CHUNK // width
        for begin in np.arange(0, len(rows), some).tolist():
            part = rows[begin : begin + some]
            flat = scratch[: part.size].reshape(part.shape)
            np.multiply(places[begin : begin + some, None], width, out=flat)
            np.add(flat, columns, out=flat)
            ufunc.at(elements, flat.reshape(-1), part.reshape(-1))


def _scratch(rows: int, width: int) -> TensorSpec:
    return TensorSpec((0 if width >= _WIDE else min(rows * width, _CHUNK),), int64)


# ---------------------------------------------------------------------------- segments


def _infer_segments(data: TensorSpec, ids: TensorSpec, *, num_segments: int) -> TensorSpec:
    check_index_dtype("UnsortedSegment", ids)
    rank = len(ids.shape)
    if data.shape[:rank] != ids.shape:
        raise InvalidArgumentError(
            f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = "
            f"{shape_text(ids.shape)} [Op:UnsortedSegment]"
        )
    return TensorSpec((num_segments, *data.shape[rank:]), data.dtype)


def _segments_workspace(
    data: TensorSpec, ids: TensorSpec, *, num_segments: int
) -> tuple[TensorSpec, ...]:
    return (_scratch(math.prod(ids.shape), math.prod(data.shape[len(ids.shape) :])),)


def _segments(
    xp: Any,
    out: Any,
    data: Any,
    ids: Any,
    *,
    ufunc: str,
    num_segments: int,
    workspace: tuple[Any, ...],
) -> None:
    xp.copyto(out, of_nothing(ufunc, out.dtype))
    if data.size:
        places, width = ids.reshape(-1), math.prod(data.shape[ids.ndim :])
        matrix, rows = out.reshape(-1, width), data.reshape(-1, width)
        _combine(getattr(xp, ufunc), matrix, places, rows, workspace[0])


def of_nothing(ufunc: str, dtype: Any) -> Any:
    """Return what such a segment is, to which no row belongs."""
    if ufunc in ("add", "multiply"):
        return ufunc == "multiply"
    raise NotImplementedError


def _check_segments(data: Any, ids: Any, *, num_segments: int) -> Check | None:
    def check() -> None:
        # Ids below 0 belong to no segment.
        largest = ids.argmax()
        if ids.item(largest) >= num_segments:
            place = tuple(int(each) for each in np.unravel_index(largest, ids.shape))
            raise InvalidArgumentError(
                f"segment_ids{shape_text(place)} = {ids.item(largest)} is out of range "
                f"[0, {num_segments}) [Op:UnsortedSegment]"
            )

    return check if ids.size else None


def _grad_sum(call: OpCall, g: Tensor) -> Grads:
    # What belongs to no segment gets zeros.
    return [GATHER(g, call.inputs[1], axis=0, outside=True), None]


UNSORTED_SEGMENT_SUM = register(
    Op(
        name="UnsortedSegmentSum",
        infer=_infer_segments,
        kernel=functools.partial(_segments, ufunc="add"),
        gradient=_grad_sum,
        workspace=_segments_workspace,
        dtypes=NUMBERS,
        validate=_check_segments,
        whole=True,
    )
)


def _segment_arguments(
    data: Any, segment_ids: Any, num_segments: Any, op: str
) -> tuple[Tensor, Tensor, int]:
    values, ids, count = (adopt(each, None) for each in (data, segment_ids, num_segments))
    check_index_dtype(op, ids.spec)
    check_index_dtype(op, count.spec, "Tnumsegments")
    if count.ndim:
        raise InvalidArgumentError(
            f"num_segments should be a scalar, not shape {shape_text(count.shape)} [Op:{op}]"
        )
    if int(count) < 0:
        raise InvalidArgumentError(
            f"Input num_segments == {int(count)} must not be negative. [Op:{op}]"
        )
    return values, ids, int(count)


@explained
def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Return sums of rows, each of the rows that have its number.

    Args:
        data: The rows: slices behind the axes of `segment_ids`.
        segment_ids: Int32 or int64, for each row the number of its sum; below 0: of none.
        num_segments: How many sums there are. One without rows is 0.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or there is no such sum. On a GPU its row
            is left out.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_sum([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 3).numpy()
        array([[3, 4],
               [6, 8],
               [0, 0]], dtype=int32)
    """
    values, ids, count = _segment_arguments(data, segment_ids, num_segments, "UnsortedSegmentSum")
    return UNSORTED_SEGMENT_SUM(values, ids, num_segments=count)
