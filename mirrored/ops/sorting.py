"""The order of the elements along an axis: sorting them, and finding the largest.

One op finds the places in order, and what is there is gathered, whose gradient goes back to it.
"""

import math
from operator import index
from typing import Any, NamedTuple, SupportsIndex

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import clip_by_value
from mirrored.ops.comparison import EQUAL, LOGICAL_AND, is_finite, reduce_all
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.creation import FILL, count_up_into
from mirrored.ops.gathering import gather
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.op import define_op
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.shaping import RESHAPE, cast, normalize_axis, transpose
from mirrored.ops.spec import (
    FLOATS,
    NUMBERS,
    DType,
    TensorSpec,
    as_dtype,
    bool_,
    float32,
    int32,
    int64,
)
from mirrored.ops.tensor import Tensor

_HALF = 32  # Bits: a key's upper half orders, and its lower half is the place, which is its own.
_LOWER = (1 << _HALF) - 1


def _infer(x: TensorSpec, *, k: int, ascending: bool, output_type: DType) -> TensorSpec:
    if not x.shape:
        raise InvalidArgumentError("input must be >= 1-D, got shape [] [Op:TopKV2]")
    if k < 0:
        raise InvalidArgumentError(f"Need k >= 0, got {k} [Op:TopKV2]")
    if k > x.shape[-1]:
        raise InvalidArgumentError(
            f"input must have at least k columns. Had {x.shape[-1]}, needed {k} [Op:TopKV2]"
        )
    return TensorSpec((*x.shape[:-1], k), output_type)


def _workspace(x: TensorSpec, **_: Any) -> tuple[TensorSpec, ...]:
    is_wide = x.dtype.itemsize > int32.itemsize
    keys, places = TensorSpec(x.shape, int64), TensorSpec(x.shape[-1:], int64)
    orders = TensorSpec(x.shape, int64 if is_wide else int32)
    row_starts = TensorSpec((math.prod(x.shape[:-1]), 1), int64)
    return (
        keys,
        places,
        orders,
        *([TensorSpec(x.shape, bool_)] if x.dtype in FLOATS else []),
        *([keys, row_starts] if is_wide else []),
    )


def _top_k(xp: Any, out: Any, x: Any, *, k: int, ascending: bool, workspace: Any, **_: Any) -> None:
    if not out.size:
        return
    keys, places, orders, *others = workspace
    if x.dtype.kind == "f":
        is_nan, *others = others
        scratch = keys.reshape(-1).view(orders.dtype)[: x.size].reshape(x.shape)
        _order_floats(xp, orders, x, is_nan, scratch)
    elif x.dtype.kind == "u" and x.itemsize == orders.itemsize:
        # Less half of their range, so that they are in order with a sign.
        xp.bitwise_xor(x.view(orders.dtype), -1 << (8 * x.itemsize - 1), out=orders)
    else:
        xp.copyto(orders, x)
    if not ascending:
        xp.invert(orders, out=orders)
    count_up_into(xp, places)
    if others:
        _sort_wide(xp, out, keys, places, orders, *others)
        return
    xp.copyto(keys, orders)
    xp.left_shift(keys, _HALF, out=keys)
    xp.bitwise_or(keys, places, out=keys)
    if k < x.shape[-1]:
        xp.ndarray.partition(keys, k - 1)
    first = keys[..., :k]
    xp.ndarray.sort(first)
    xp.bitwise_and(first, _LOWER, out=first)
    xp.copyto(out, first)


def _order_floats(xp: Any, orders: Any, x: Any, is_nan: Any, scratch: Any) -> None:
    """Write integers in the order of floats: both zeros are one, and NaN is the largest."""
    bits = 8 * x.itemsize
    most = (1 << (bits - 1)) - 1
    xp.add(x, 0.0, out=orders.view(x.dtype))
    # The bits of negative numbers, less the sign, are in the other order.
    xp.right_shift(orders, bits - 1, out=scratch)
    xp.bitwise_and(scratch, most, out=scratch)
    xp.bitwise_xor(orders, scratch, out=orders)
    xp.not_equal(x, x, out=is_nan)
    xp.copyto(orders, most, where=is_nan)


def _sort_wide(
    xp: Any, out: Any, keys: Any, places: Any, orders: Any, halves: Any, row_starts: Any
) -> None:
    """Sort by the lower halves of 64 bits, and what comes out of that by the upper ones."""
    length, k = places.size, out.shape[-1]
    count_up_into(xp, row_starts)
    xp.multiply(row_starts, length, out=row_starts)
    keys, orders, halves = (buffer.reshape(-1, length) for buffer in (keys, orders, halves))
    # Less a half of their range, so that they are in order with a sign too.
    xp.bitwise_and(orders, _LOWER, out=keys)
    xp.subtract(keys, 1 << (_HALF - 1), out=keys)
    xp.left_shift(keys, _HALF, out=keys)
    _sort_rows(xp, keys, places, row_starts)
    xp.take(orders.reshape(-1), keys, out=halves, mode="clip")
    xp.bitwise_and(halves, ~_LOWER, out=halves)
    _sort_rows(xp, halves, places, row_starts)
    xp.take(keys.reshape(-1), halves, out=orders, mode="clip")
    xp.subtract(orders, row_starts, out=orders)
    xp.copyto(out.reshape(-1, k), orders[:, :k])


def _sort_rows(xp: Any, keys: Any, places: Any, row_starts: Any) -> None:
    """Bring keys in order, and write where in the whole array each was."""
    xp.bitwise_or(keys, places, out=keys)
    xp.ndarray.sort(keys)
    xp.bitwise_and(keys, _LOWER, out=keys)
    xp.add(keys, row_starts, out=keys)


TOP_K = define_op(name="TopKV2", infer=_infer, kernel=_top_k, dtypes=NUMBERS, workspace=_workspace)


# ---------------------------------------------------------------------------- public functions


class TopKV2(NamedTuple):
    """What `top_k` returns.

    Attributes:
        values: The largest elements of each row, in order.
        indices: Where in their row they are.
    """

    values: Tensor
    indices: Tensor


def _gathered(x: Tensor, places: Tensor) -> Tensor:
    return gather(x, places, axis=-1, batch_dims=x.ndim - 1)


def _integer(k: Any) -> int:
    try:
        return index(k)
    except TypeError:
        raise InvalidArgumentError(f"k must be an integer. Received: {k} [Op:TopKV2]") from None


def top_k(
    input: TensorLike,
    k: SupportsIndex = 1,
    sorted: bool = True,
    index_type: DTypeLike = int32,
    name: str | None = None,
) -> TopKV2:
    """Return the largest elements along the last axis, and where they are.

    Of equal ones the first comes first. NaN counts as the largest; a gradient goes to the elements
    that were taken.

    Args:
        input: Numbers, of rank 1 or more.
        k: How many.
        sorted: Whether they have to be in order, as they always are.
        index_type: The dtype of the indices, int32 or int64.
        name: Accepted for compatibility.

    Returns:
        A named tuple of `values` and `indices`, both with `k` as the size of their last axis.

    Raises:
        InvalidArgumentError: There are fewer than `k` elements, `k` is negative, or the tensor is a
            scalar.

    Example:
        >>> import mirrored as mr
        >>> values, indices = mr.math.top_k([[1.0, 5.0, 3.0]], k=2)
        >>> values.numpy(), indices.numpy()
        (array([[5., 3.]], dtype=float32), array([[1, 2]], dtype=int32))
    """
    x, dtype = adopt(input, None), as_dtype(index_type)
    check_index_dtype("TopKV2", TensorSpec((), dtype), "index_type")
    places = TOP_K(x, k=_integer(k), ascending=False, output_type=dtype)
    return TopKV2(_gathered(x, places), places)


def sort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Return a tensor with the elements along an axis in order.

    NaN counts as the largest. A gradient goes back to where each element came from.

    Args:
        values: Numbers, of rank 1 or more.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        name: Accepted for compatibility.

    Raises:
        ValueError: The direction is neither.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.sort([3, 1, 2]).numpy()
        array([1, 2, 3], dtype=int32)
        >>> mr.sort([[3, 1], [2, 5]], axis=0, direction="DESCENDING").numpy()
        array([[3, 5],
               [2, 1]], dtype=int32)
    """
    x, places, order = _sorted_along(values, axis, direction)
    return transpose(_gathered(x, places), order)


def argsort(
    values: TensorLike,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return where along an axis the elements are that come first, second, ... in order.

    Args:
        values: Numbers, of rank 1 or more.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        stable: Whether of equal elements the first has to come first, as it always does.
        name: Accepted for compatibility.

    Raises:
        ValueError: The direction is neither.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.argsort([3, 1, 2, 1]).numpy()
        array([1, 3, 2, 0], dtype=int32)
    """
    _, places, order = _sorted_along(values, axis, direction)
    return transpose(places, order)


def _sorted_along(values: Any, axis: Any, direction: Any) -> tuple[Tensor, Tensor, list[int]]:
    """Return a tensor with an axis as its last, the places in order there, and how to go back."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            "Argument `direction` should be one of ASCENDING, DESCENDING. Received: "
            f"direction={direction}"
        )
    x = adopt(values, None)
    try:
        place = normalize_axis("TopKV2", index(axis), x.ndim)
    except TypeError:
        raise ValueError(f"Argument `axis` must be a constant scalar. Received: {axis}") from None
    order = list(range(x.ndim))
    order[place], order[-1] = order[-1], order[place]
    x = transpose(x, order)
    ascending = direction == "ASCENDING"
    return x, TOP_K(x, k=x.shape[-1], ascending=ascending, output_type=int32), order


def in_top_k(
    targets: TensorLike, predictions: TensorLike, k: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return whether each row has its target among its largest elements.

    Whoever is as large as the last of them is among them. A row with an element that is not finite
    has none, and so has a target that is no place in a row.

    Args:
        targets: Places in the rows, int32 or int64 of shape (rows,).
        predictions: Float32 of shape (rows, classes).
        k: How many the largest are.
        name: Accepted for compatibility.

    Returns:
        Booleans of shape (rows,).

    Raises:
        InvalidArgumentError: The shapes do not fit.
        ValueError: The predictions are of another dtype.
        TypeError: `k` is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.math.in_top_k([0, 1], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], k=2).numpy()
        array([False,  True])
    """
    x, places, count = convert_to_tensor(predictions, float32), adopt(targets, None), index(k)
    check_index_dtype("InTopKV2", places.spec, "T")
    for label, tensor, rank in (("predictions", x, 2), ("targets", places, 1)):
        if tensor.ndim != rank:
            raise InvalidArgumentError(f"{label} must be {rank}-dimensional [Op:InTopKV2]")
    rows, classes = x.shape
    if places.shape != (rows,):
        raise InvalidArgumentError(
            f"First dimension of predictions {rows} must match length of targets {places.size} "
            "[Op:InTopKV2]"
        )
    if not classes:
        return FILL(shape=(rows,), value=False, dtype=bool_)
    nearest = RESHAPE(clip_by_value(places, 0, classes - 1), shape=(rows, 1))
    larger = x > gather(x, nearest, batch_dims=1)
    known = LOGICAL_AND(reduce_all(is_finite(x), 1), EQUAL(places, RESHAPE(nearest, shape=(rows,))))
    return LOGICAL_AND(known, reduce_sum(cast(larger, int32), 1) < count)


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return whether no element is smaller than the one before it; NaN never fits.

    Args:
        x: Numbers of any shape, taken row by row.
        name: Accepted for compatibility.

    Raises:
        TypeError: They are booleans.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.math.is_non_decreasing([1, 2, 2]))
        True
    """
    before, after = _neighbours(x)
    return reduce_all(before <= after)


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return whether each element is larger than the one before it; NaN never is.

    Args and errors: as for `is_non_decreasing`.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.math.is_strictly_increasing([1, 2, 2]))
        False
    """
    before, after = _neighbours(x)
    return reduce_all(before < after)


def _neighbours(x: Any) -> tuple[Tensor, Tensor]:
    """Return all elements but the last, and all but the first."""
    tensor = adopt(x, None)
    if tensor.dtype == bool_:
        raise TypeError(f"Expected x to be numeric, instead found: {tensor}")
    flat = RESHAPE(tensor, shape=(tensor.size,))
    return flat[:-1], flat[1:]


explain_functions(__name__, all_but="")
