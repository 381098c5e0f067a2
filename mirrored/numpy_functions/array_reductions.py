"""NumPy's reductions over axes, sums up to each element, and differences.

Sums of integers and booleans are of 64 bits, and their means are floats.
"""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.numpy_functions.array_conversion import (
    FLOAT,
    array,
    booleans,
    floats,
    result_type,
    summands,
)
from mirrored.numpy_functions.array_creation import diagonal
from mirrored.numpy_functions.array_manipulation import atleast_1d, ravel
from mirrored.numpy_functions.ufuncs import isnan
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.spec import FLOATS, INTEGERS, bool_, int8, int64

Reduction = Callable[..., Tensor]


def _sum_like(
    function: Reduction, of_bools: Reduction, a: Any, axis: Any, dtype: Any, keepdims: Any
) -> Tensor:
    tensor = array(a, dtype)
    if dtype is not None and tensor.dtype == bool_:
        return of_bools(tensor, axis, bool(keepdims))
    return function(tensor if dtype is not None else summands(tensor), axis, bool(keepdims))


def sum(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the sum over axes.

    Args:
        a: The elements.
        axis: One axis, several, or None for all.
        dtype: The dtype; None: int64 or uint64 for integers and booleans.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.sum([[1, 2], [3, 4]], axis=0).numpy()
        array([4, 6])
    """
    return _sum_like(ops.reduce_sum, ops.reduce_any, a, axis, dtype, keepdims)


def prod(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the product over axes.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12])
    """
    return _sum_like(ops.reduce_prod, ops.reduce_all, a, axis, dtype, keepdims)


def mean(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the mean over axes; that of integers and booleans is float64.

    Args and errors: as for `sum`.

    Raises:
        ValueError: `out` is given.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.mean([1, 2]))
        1.5
    """
    _check_out(out)
    return ops.reduce_mean(
        array(a, dtype) if dtype is not None else floats(a), axis, bool(keepdims)
    )


def _check_out(out: Any) -> None:
    if out is not None:
        raise ValueError("Setting out is not supported.")


def _extreme(function: Reduction, of_bools: Reduction, a: Any, axis: Any, keepdims: Any) -> Tensor:
    tensor = array(a)
    chosen = of_bools if tensor.dtype == bool_ else function
    return chosen(tensor, axis, bool(keepdims))


def amax(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, keepdims: bool | None = None
) -> Tensor:
    """Return the largest element over axes.

    Args and errors: as for `mean`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.amax([1, 2]))
        2
    """
    _check_out(out)
    return _extreme(ops.reduce_max, ops.reduce_any, a, axis, keepdims)


def amin(
    a: TensorLike, axis: AxisLike | None = None, out: None = None, keepdims: bool | None = None
) -> Tensor:
    """Return the smallest element over axes.

    Args and errors: as for `mean`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.amin([1, 2]))
        1
    """
    _check_out(out)
    return _extreme(ops.reduce_min, ops.reduce_all, a, axis, keepdims)


def max(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return the largest element over axes, as `amax` does.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.max([1, 2]))
        2
    """
    return amax(a, axis, keepdims=keepdims)


def min(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return the smallest element over axes, as `amin` does.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.min([1, 2]))
        1
    """
    return amin(a, axis, keepdims=keepdims)


def ptp(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return the distance of the largest from the smallest element over axes.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.ptp([1, 5, 3]))
        4
    """
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


def var(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the variance over axes.

    Args:
        a: The elements.
        axis: One axis, several, or None for all.
        dtype: The dtype of the result; Python's float is float32, as in TensorFlow. None: that of
            the elements, or float64.
        out: None alone.
        ddof: How many fewer the sum of the squares is divided by.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ValueError: `out` is given.
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.var([1, 2, 3], ddof=1))
        1.0
    """
    _check_out(out)
    tensor = ops.cast(array(a), result_type(a, dtype)) if dtype is not None else floats(a)
    if ddof == 0:
        result = ops.reduce_variance(tensor, axis, bool(keepdims))
    else:
        distances = tensor - ops.reduce_mean(tensor, axis, True)
        squares = ops.reduce_sum(ops.square(distances), axis, bool(keepdims))
        count = tensor.size // (squares.size or 1)
        result = squares / ops.constant(count - ddof, tensor.dtype)
    return ops.cast(result, dtype) if dtype is not None else result


def std(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return the root of the variance over axes.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.std([1, 3]))
        1.0
    """
    return ops.reduce_std(floats(a), axis, bool(keepdims))


def all(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return whether no element over axes is 0.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.all([1, 0]))
        False
    """
    return ops.reduce_all(booleans(a), axis, bool(keepdims))


def any(a: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None) -> Tensor:
    """Return whether one of the elements over axes is not 0.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.any([1, 0]))
        True
    """
    return ops.reduce_any(booleans(a), axis, bool(keepdims))


def count_nonzero(a: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return how many elements are not 0, over axes.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.count_nonzero([1, 0]))
        1
    """
    return ops.count_nonzero(array(a), axis)


def _placed(function: Reduction, a: Any, axis: int | None) -> Tensor:
    tensor = ravel(a) if axis is None else atleast_1d(a)
    return function(ops.cast(tensor, int8) if tensor.dtype == bool_ else tensor, axis)


def argmax(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the largest element along an axis, or among all in a row.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.argmax([1, 5, 3]))
        1
    """
    return _placed(ops.argmax, a, axis)


def argmin(a: TensorLike, axis: int | None = None) -> Tensor:
    """Return the index of the smallest element along an axis, or among all in a row.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.argmin([1, 5, 3]))
        0
    """
    return _placed(ops.argmin, a, axis)


def _scanned(function: Reduction, a: Any, axis: int | None, dtype: Any) -> Tensor:
    tensor = array(a, dtype)
    if dtype is None and tensor.dtype in INTEGERS:
        tensor = ops.cast(tensor, np.promote_types(tensor.dtype, int64))
    return function(ravel(tensor), 0) if axis is None else function(tensor, axis)


def cumsum(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sums of all elements up to each one.

    Args:
        a: The elements.
        axis: Along which axis; None: that of all elements in a row.
        dtype: The dtype; None: int64 for integers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.cumsum([1, 2, 3]).numpy()
        array([1, 3, 6])
    """
    return _scanned(ops.cumsum, a, axis, dtype)


def cumprod(a: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the products of all elements up to each one.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.cumprod([1, 2, 3]).numpy()
        array([1, 2, 6])
    """
    return _scanned(ops.cumprod, a, axis, dtype)


_OF_A_STEP = 1 << 12  # Bytes that the operations of a step take in a graph, about.


def neighbours(tensor: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return all elements but the first ones along an axis, and all but the last ones.

    Args:
        tensor: The elements.
        axis: The axis.
    """
    behind, before = ([slice(None)] * tensor.ndim for _ in range(2))
    behind[axis], before[axis] = slice(1, None), slice(None, -1)
    return tensor[tuple(behind)], tensor[tuple(before)]


def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """Return how far each element is from the next one along an axis.

    Args:
        a: The elements; of booleans it is whether they differ.
        n: How often to do so.
        axis: The axis.

    Raises:
        ValueError: There is no such axis, or `n` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diff([1, 4, 9]).numpy()
        array([3, 5])
    """
    tensor = array(a)
    if (axis + tensor.ndim if axis < 0 else axis) >= tensor.ndim:
        raise ValueError(f"Argument `axis` (received axis={axis}) is out of bounds.")
    if n < 0:
        raise ValueError(f"Argument `n` must be a non-negative integer. Received: n={n!r}")
    between = ops.not_equal if tensor.dtype == bool_ else ops.subtract
    times = builtins.min(n, tensor.shape[axis])  # Then there are no elements left.
    take_constant_room((times,), _OF_A_STEP)
    for _ in range(times):
        tensor = between(*neighbours(tensor, axis))
    return tensor


def without_nan(a: Any, value: float) -> Tensor:
    """Return the elements, with a value instead of NaN.

    Args:
        a: The elements.
        value: The value.
    """
    tensor = array(a)
    if tensor.dtype not in FLOATS:
        return tensor
    return ops.where(isnan(tensor), ops.constant(value, tensor.dtype), tensor)


def nansum(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum over axes, in which NaN counts as 0.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nansum([1.0, np.nan]))
        1.0
    """
    return sum(without_nan(a, 0), axis, dtype, keepdims)


def nanprod(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the product over axes, in which NaN counts as 1.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nanprod([2.0, np.nan]))
        2.0
    """
    return prod(without_nan(a, 1), axis, dtype, keepdims)


def nanmean(
    a: TensorLike,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Return the mean over axes of the elements that are not NaN.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nanmean([1.0, 3.0, np.nan]))
        2.0
    """
    tensor = array(a)
    if tensor.dtype not in FLOATS:
        return mean(tensor, axis, dtype, keepdims=keepdims)
    kind = tensor.dtype if dtype is None else dtype
    counted = sum(ops.logical_not(isnan(tensor)), axis, kind, keepdims)
    return nansum(tensor, axis, kind, bool(keepdims)) / counted


def average(
    a: TensorLike,
    axis: int | None = None,
    weights: TensorLike | None = None,
    returned: bool = False,
) -> Any:
    """Return the mean over an axis, of elements that weigh differently.

    Args:
        a: The elements.
        axis: The axis; None: all.
        weights: What each weighs, of the elements' shape, or a vector along the axis; None: all the
            same.
        returned: Whether to return the sum of the weights as well.

    Raises:
        ValueError: The axis is none.
        InvalidArgumentError: The weights' shape does not fit.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.average([1, 2], weights=[3, 1]))
        1.25
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"Argument `axis` must be an integer. Received axis={axis}")
    tensor = array(a)
    if weights is None:
        tensor = floats(tensor)
        total: Any = tensor.size if axis is None else tensor.shape[axis]
        result = ops.reduce_mean(tensor, axis)
        total = ops.constant(total, tensor.dtype)
    else:
        result, total = _weighted(tensor, weights, axis)
    return (result, ops.broadcast_to(total, result.shape)) if returned else result


def _weighted(tensor: Tensor, weights: Any, axis: int | None) -> tuple[Tensor, Tensor]:
    kinds = (tensor.dtype, weights) if tensor.dtype in FLOATS else (tensor.dtype, weights, FLOAT)
    kind = result_type(*kinds)
    tensor, parts = array(tensor, kind), array(weights, kind)
    along = None if parts.ndim == tensor.ndim else axis  # What a vector of weights is along.
    if parts.ndim != 1 if along is not None else parts.shape != tensor.shape:
        raise InvalidArgumentError(
            f"Weights must have shape {tensor.shape}, or a vector. Received: {parts.shape}"
        )
    if along is not None:
        total = ops.reduce_sum(parts)
        return ops.tensordot(tensor, parts, [[along], [0]]) / total, total
    total = ops.reduce_sum(parts, axis)
    return ops.reduce_sum(tensor * parts, axis) / total, total


def trace(
    a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
) -> Tensor:
    """Return the sum of a diagonal of matrices.

    Args:
        a: The matrices.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.
        dtype: The dtype; None: that of the elements for the main diagonal of the last two axes, and
            otherwise as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.trace([[1, 2], [3, 4]]))
        5
    """
    tensor = array(a, dtype)
    rank = tensor.ndim
    if offset == 0 and axis1 in (-2, rank - 2) and axis2 in (-1, rank - 1):
        return ops.trace(tensor)
    return sum(diagonal(tensor, offset, axis1, axis2), -1, dtype)


explain_functions(__name__)
