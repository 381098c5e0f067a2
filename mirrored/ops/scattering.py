"""Rows brought together by places: sums, products and extremes of those that have one place.

Rows of a place are taken in their order, on every device, so the bits are always the same. The
functions for indices along several axes compute flat places first.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.comparison import EQUAL, GREATER
from mirrored.ops.conversion import adopt, convert_to_tensor, is_tensor
from mirrored.ops.creation import ONES_LIKE, ZEROS_LIKE
from mirrored.ops.elementwise import MAXIMUM, NEG, SUB
from mirrored.ops.gathering import GATHER, ignores
from mirrored.ops.indices import check_index_dtype, flat_indices
from mirrored.ops.op import Check, Gradient, Grads, Op, OpCall, define_op
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import (
    ALL_DTYPES,
    NUMBERS,
    SIGNED,
    DType,
    Shape,
    TensorSpec,
    as_shape,
    bool_,
    check_dtype,
    check_same_dtype,
    int32,
    int64,
    shape_text,
)
from mirrored.ops.tensor import Tensor

_CHUNK = 1 << 14  # Elements at a time, whose places fit in a core's own cache.
_WIDE = 512  # From this number of elements on, adding whole rows is faster than adding elements.

# What combines two rows; and of extremes, where the second one takes the place of the first: NumPy
# keeps every NaN, TensorFlow what its comparisons leave. They differ in how they treat a tie.
_UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "greater": np.maximum,
    "less": np.minimum,
}
_TAKES: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda there, row: ~(there > row),
    "min": lambda there, row: ~(there < row),
    "greater": lambda there, row: there < row,
    "less": lambda there, row: there > row,
}


def _bring(
    kind: str, start: Callable[[Any], None], out: Any, places: Any, rows: Any, scratch: Any
) -> None:
    """Combine rows with those of a matrix that they belong to, one after the other.

    Args:
        kind: How.
        start: Writes what the matrix is before.
        out: The matrix.
        places: For each row its place in `out`; below 0: none.
        rows: As many rows.
        scratch: For the places of some elements.
    """
    start(out)
    if not rows.size:
        return
    if places.min() < 0:
        kept = places >= 0
        places, rows = places[kept], rows[kept]
    if kind == "update":
        some = _CHUNK // 4  # NumPy copies places that are not int64.
        for begin in np.arange(0, len(rows), some).tolist():
            out[places[begin : begin + some]] = rows[begin : begin + some]
        return
    _combine(_UFUNCS[kind], out, places, rows, scratch)
    if kind in _TAKES and out.dtype.kind == "f" and np.isnan(out.max(initial=0.0)):
        start(out)
        for place, row in zip(places.tolist(), rows, strict=True):
            np.copyto(out[place], row, where=_TAKES[kind](out[place], row))


def _combine(ufunc: Any, out: Any, places: Any, rows: Any, scratch: Any) -> None:
    width = rows.shape[1]
    if width >= _WIDE:
        for place, row in zip(places.tolist(), rows, strict=True):
            ufunc(out[place], row, out=out[place])
        return
    # NumPy takes a third of the time for places of elements that it takes for those of rows.
    elements, columns, some = out.reshape(-1), np.arange(width), _CHUNK // width
    for begin in np.arange(0, len(rows), some).tolist():
        part = rows[begin : begin + some]
        flat = scratch[: part.size].reshape(part.shape)
        np.multiply(places[begin : begin + some, None], width, out=flat)
        np.add(flat, columns, out=flat)
        ufunc.at(elements, flat.reshape(-1), part.reshape(-1))


def _scratch(rows: int, width: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec((0 if width >= _WIDE else min(rows * width, _CHUNK),), int64),)


# ---------------------------------------------------------------------------- segments


def _infer_segments(
    data: TensorSpec, ids: TensorSpec, *, num_segments: int, op: str, **_: Any
) -> TensorSpec:
    check_index_dtype(op, ids)
    rank = len(ids.shape)
    if data.shape[:rank] != ids.shape:
        raise InvalidArgumentError(
            f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = "
            f"{shape_text(ids.shape)} [Op:{op}]"
        )
    return TensorSpec((num_segments, *data.shape[rank:]), data.dtype)


def _segments_workspace(data: TensorSpec, ids: TensorSpec, **_: Any) -> tuple[TensorSpec, ...]:
    return _scratch(math.prod(ids.shape), math.prod(data.shape[len(ids.shape) :]))


def _segments(
    xp: Any,
    out: Any,
    data: Any,
    ids: Any,
    *,
    kind: str,
    initial: float = 0,
    workspace: Any,
    **_: Any,
) -> None:
    width = math.prod(data.shape[ids.ndim :])
    shape = (ids.size, width)
    matrix = out.reshape(len(out), width)
    start = functools.partial(xp.copyto, src=initial)
    _bring(kind, start, matrix, ids.reshape(-1), data.reshape(shape), workspace[0])


def _check_segments(data: Any, ids: Any, *, num_segments: int, op: str, **_: Any) -> Check | None:
    def check() -> None:
        # Ids below 0 belong to no segment.
        largest = ids.argmax()
        if ids.item(largest) >= num_segments:
            place = tuple(int(index) for index in np.unravel_index(largest, ids.shape))
            raise InvalidArgumentError(
                f"segment_ids{shape_text(place)} = {ids.item(largest)} is out of range "
                f"[0, {num_segments}) [Op:{op}]"
            )

    return check if ids.size else None


def _rows_of(segments: Tensor, ids: Tensor) -> Tensor:
    """Return for each row its segment; zeros where it belongs to none."""
    return GATHER(segments, ids, axis=0, outside=True)


def _grad_sum(call: OpCall, g: Tensor) -> Grads:
    return [_rows_of(g, call.inputs[1]), None]


def _grad_extreme(call: OpCall, g: Tensor) -> Grads:
    # Those that are the extreme share its gradient.
    data, ids = call.inputs
    count = call.attrs["num_segments"]
    chosen = EQUAL(data, _rows_of(call.output, ids))
    sharing = UNSORTED_SEGMENT_SUM(cast(chosen, g.dtype), ids, num_segments=count)
    share = g / MAXIMUM(sharing, 1)
    return [SELECT(chosen, _rows_of(share, ids), ZEROS_LIKE(data)), None]


def _grad_prod(call: OpCall, g: Tensor) -> Grads:
    # Of one factor that is 0 the gradient is the product of the others, of more it is 0.
    data, ids = call.inputs
    count = call.attrs["num_segments"]
    is_zero = EQUAL(data, 0)
    zeros = UNSORTED_SEGMENT_SUM(cast(is_zero, int32), ids, num_segments=count)
    flows = SELECT(GREATER(zeros, 1), ZEROS_LIKE(g), g)
    others = SELECT(is_zero, ONES_LIKE(data), data)
    of_others = UNSORTED_SEGMENT_PROD(others, ids, num_segments=count)
    slope = SELECT(is_zero, _rows_of(of_others, ids), _rows_of(call.output, ids) / data)
    return [_rows_of(flows, ids) * slope, None]


def _segment_op(name: str, kind: str, gradient: Gradient, initial: float = 0) -> Op:
    return define_op(
        name=name,
        infer=functools.partial(_infer_segments, op=name),
        kernel=functools.partial(_segments, kind=kind, initial=initial),
        gradient=gradient,
        workspace=_segments_workspace,
        dtypes=NUMBERS,
        validate=functools.partial(_check_segments, op=name),
        whole=True,
    )


UNSORTED_SEGMENT_SUM = _segment_op("UnsortedSegmentSum", "sum", _grad_sum)
UNSORTED_SEGMENT_PROD = _segment_op("UnsortedSegmentProd", "prod", _grad_prod, initial=1)
# What a segment without rows is, is the attribute `initial`.
UNSORTED_SEGMENT_MAX = _segment_op("UnsortedSegmentMax", "max", _grad_extreme)
UNSORTED_SEGMENT_MIN = _segment_op("UnsortedSegmentMin", "min", _grad_extreme)


# ---------------------------------------------------------------------------- rows of a matrix


def _infer_rows(tensor: TensorSpec, places: TensorSpec, rows: TensorSpec, *, op: str) -> TensorSpec:
    check_same_dtype(op, tensor, TensorSpec(rows.shape, rows.dtype))
    return tensor


def _rows(
    xp: Any, out: Any, tensor: Any, places: Any, rows: Any, *, kind: str, workspace: Any
) -> None:
    same = out.__array_interface__["data"] == tensor.__array_interface__["data"]
    start = (lambda _: None) if same else functools.partial(xp.copyto, src=tensor)
    _bring(kind, start, out, places, rows, workspace[0])


def _grad_update(call: OpCall, g: Tensor) -> Grads:
    _, places, rows = call.inputs
    return [
        lambda: TENSOR_SCATTER_UPDATE(g, places, ZEROS_LIKE(rows)),
        None,
        lambda: _rows_of(g, places),
    ]


def _grad_add(call: OpCall, g: Tensor) -> Grads:
    return [g, None, lambda: _rows_of(g, call.inputs[1])]


def _grad_chosen(call: OpCall, g: Tensor) -> Grads:
    # All that are the extreme share its gradient, the tensor's own element among them.
    tensor, places, rows = call.inputs
    own = cast(EQUAL(tensor, call.output), g.dtype)
    of_rows = cast(EQUAL(rows, _rows_of(call.output, places)), g.dtype)
    count = own + UNSORTED_SEGMENT_SUM(of_rows, places, num_segments=len(tensor))
    return [lambda: g * own / count, None, lambda: _rows_of(g / count, places) * of_rows]


def _rows_op(
    name: str, kind: str, gradient: Gradient, dtypes: frozenset[DType], may_alias: tuple[int, ...]
) -> Op:
    return define_op(
        name=name,
        infer=functools.partial(_infer_rows, op=name),
        kernel=functools.partial(_rows, kind=kind),
        gradient=gradient,
        workspace=lambda tensor, places, rows: _scratch(*rows.shape),
        dtypes=dtypes,
        may_alias=may_alias,
        whole=True,
    )


# Each takes a matrix, places of rows, and as many rows. Extremes may start again, and so need the
# matrix as it was.
TENSOR_SCATTER_UPDATE = _rows_op("TensorScatterUpdate", "update", _grad_update, ALL_DTYPES, (0,))
TENSOR_SCATTER_ADD = _rows_op("TensorScatterAdd", "sum", _grad_add, NUMBERS, (0,))
TENSOR_SCATTER_MAX = _rows_op("TensorScatterMax", "greater", _grad_chosen, NUMBERS, ())
TENSOR_SCATTER_MIN = _rows_op("TensorScatterMin", "less", _grad_chosen, NUMBERS, ())


def _places_and_rows(
    op: str, places: Tensor, updates: Tensor, shape: Shape, policy: str
) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """Return places in a matrix for indices in a tensor of a shape, their rows, and its shape."""
    check_index_dtype(op, places.spec)
    ignore = ignores(policy, op)
    for label, tensor in (("Indices", places), ("Updates", updates)):
        if not tensor.ndim:
            raise InvalidArgumentError(
                f"{label} shape must have rank at least one. Found:[] [Op:{op}]"
            )
    outer, depth = places.shape[:-1], places.shape[-1]
    if updates.shape[: len(outer)] != outer:
        raise InvalidArgumentError(
            "Outer dimensions of indices and update must match. Indices shape: "
            f"{shape_text(places.shape)}, updates shape:{shape_text(updates.shape)} [Op:{op}]"
        )
    if depth > len(shape) or updates.shape[len(outer) :] != shape[depth:]:
        raise InvalidArgumentError(
            "Inner dimensions of output shape must match inner dimensions of updates shape. "
            f"Output: {shape_text(shape)} updates: {shape_text(updates.shape)} [Op:{op}]"
        )
    sizes, width = shape[:depth], math.prod(shape[depth:])
    if updates.size and (not depth or not math.prod(shape)):
        raise InvalidArgumentError(
            f"Indices and updates specified for empty output shape [Op:{op}]"
        )
    flat = flat_indices(places, sizes, ignore=ignore, op=op)
    rows = RESHAPE(updates, shape=(flat.size, width))
    return flat, rows, (math.prod(sizes), width)


def scatter_nd(
    indices: TensorLike,
    updates: TensorLike,
    shape: ShapeLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return zeros of a shape, with updates added where their indices say.

    Args:
        indices: Int32 or int64. The last axis has the indices along the first axes of the shape.
        updates: For each of them an element, or a slice along the other axes.
        shape: The shape.
        bad_indices_policy: "IGNORE" leaves out updates whose indices are outside.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes do not fit, or an index is outside. On a GPU its update is left
            out.

    Example:
        >>> import mirrored as mr
        >>> mr.scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [4]).numpy()
        array([0., 4., 0., 2.], dtype=float32)
    """
    places, values = adopt(indices, None), adopt(updates, None)
    sizes = adopt(shape, None) if is_tensor(shape) else convert_to_tensor(shape, int32)
    check_index_dtype("ScatterNd", sizes.spec)
    if sizes.ndim != 1:
        raise InvalidArgumentError("Shape must be a vector [Op:ScatterNd]")
    whole = as_shape(sizes)
    flat, rows, (count, _) = _places_and_rows(
        "ScatterNd", places, values, whole, bad_indices_policy
    )
    if values.dtype == bool_:  # Their sum is whether one of them is true.
        some = UNSORTED_SEGMENT_SUM(cast(rows, int32), flat, num_segments=count)
        return cast(RESHAPE(some, shape=whole), bool_)
    sums = UNSORTED_SEGMENT_SUM(rows, flat, num_segments=count)
    return RESHAPE(sums, shape=whole)


def _scattered(
    op: Op, tensor: Any, indices: Any, updates: Any, policy: str = "", *, negated: bool = False
) -> Tensor:
    x, places = adopt(tensor, None), adopt(indices, None)
    check_dtype(op.name, op.dtypes, x.spec)
    typed = is_tensor(updates)
    values = adopt(updates, None) if typed else convert_to_tensor(updates, x.dtype)
    flat, rows, matrix = _places_and_rows(op.name, places, values, x.shape, policy)
    if negated:
        rows = NEG(rows) if rows.dtype in SIGNED else SUB(0, rows)
    return RESHAPE(op(RESHAPE(x, shape=matrix), flat, rows), shape=x.shape)


def tensor_scatter_nd_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Return a tensor in which updates replace the elements at their indices.

    Args:
        tensor: The tensor.
        indices: Int32 or int64. The last axis has the indices along the first axes of the tensor.
            Of several updates of one element the last one stays.
        updates: For each of them an element, or a slice along the other axes.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or an index is outside. On a GPU its
            update is left out.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_update([1, 2, 3, 4], [[1], [3]], [9, 7]).numpy()
        array([1, 9, 3, 7], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_UPDATE, tensor, indices, updates)


def tensor_scatter_nd_add(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates added; see `tensor_scatter_nd_update`.

    Updates are added one after the other. `bad_indices_policy="IGNORE"` leaves out those whose
    indices are outside.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_add([1, 2, 3], [[1], [1]], [10, 20]).numpy()
        array([ 1, 32,  3], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_ADD, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_sub(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates subtracted; see `tensor_scatter_nd_add`.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_sub([1, 2, 3], [[1], [1]], [10, 20]).numpy()
        array([  1, -28,   3], dtype=int32)
    """
    return _scattered(
        TENSOR_SCATTER_ADD, tensor, indices, updates, bad_indices_policy, negated=True
    )


def tensor_scatter_nd_max(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates where they are greater; see `tensor_scatter_nd_add`.

    What is as great shares the gradient, the tensor's own element among them.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_max([1, 2, 3], [[1], [2]], [9, 1]).numpy()
        array([1, 9, 3], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_MAX, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_min(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Return a tensor with updates where they are less; see `tensor_scatter_nd_max`.

    Example:
        >>> import mirrored as mr
        >>> mr.tensor_scatter_nd_min([1, 2, 3], [[1], [2]], [9, 1]).numpy()
        array([1, 2, 1], dtype=int32)
    """
    return _scattered(TENSOR_SCATTER_MIN, tensor, indices, updates, bad_indices_policy)


explain_functions(__name__, all_but="")
