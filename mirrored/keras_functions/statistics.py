"""`keras.ops` on sums, differences and means, with or without NaN elements."""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions import reductions
from mirrored.keras_functions.promotion import common_floats as _common_floats
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.keras_functions.promotion import numbers as _numbers
from mirrored.numpy_functions import array_reductions as averages
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS


def _scanned(function: Any, x: Any, axis: int | None, dtype: Any) -> Tensor:
    tensor = _numbers(x) if dtype is None else ops.cast(x, dtype)
    if tensor.dtype == ops.bool_:
        tensor = ops.cast(tensor, ops.int32)
    result: Tensor = (
        function(ops.reshape(tensor, [-1]), 0) if axis is None else function(tensor, axis)
    )
    return result


@explained
def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the sums of all elements up to each one.

    Args:
        x: Numbers.
        axis: Along which axis; None: that of all elements in a row.
        dtype: The dtype; None: that of `x`, and int32 for booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cumsum([1, 2, 3]).numpy()
        array([1, 3, 6], dtype=int32)
    """
    return _scanned(ops.cumsum, x, axis, dtype)


@explained
def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the products of all elements up to each one.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cumprod([1, 2, 3]).numpy()
        array([1, 2, 6], dtype=int32)
    """
    return _scanned(ops.cumprod, x, axis, dtype)


def _instead_of_nan(x: Any, number: float) -> Tensor:
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS:
        return tensor
    return ops.where(ops.is_nan(tensor), ops.constant(number, tensor.dtype), tensor)


@explained
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the sums of all elements up to each one, in which NaN counts as 0.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nancumsum([1.0, float("nan"), 3.0]).numpy()
        array([1., 1., 4.], dtype=float32)
    """
    return cumsum(_instead_of_nan(x, 0), axis, dtype)


@explained
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the products of all elements up to each one, in which NaN counts as 1.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nancumprod([2.0, float("nan"), 3.0]).numpy()
        array([2., 2., 6.], dtype=float32)
    """
    return cumprod(_instead_of_nan(x, 1), axis, dtype)


@explained
def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes, in which NaN counts as 0.

    Args:
        x: Numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nansum([1.0, float("nan")]).numpy().item()
        1.0
    """
    return reductions.sum(_instead_of_nan(x, 0), axis, keepdims)


@explained
def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes, in which NaN counts as 1.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanprod([2.0, float("nan")]).numpy().item()
        2.0
    """
    return reductions.prod(_instead_of_nan(x, 1), axis, keepdims)


def _mean_of_known(values: Tensor, unknown: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the mean of values that are 0 where they are unknown."""
    known = ops.cast(ops.logical_not(unknown), values.dtype)
    return ops.reduce_sum(values, axis, keepdims) / ops.reduce_sum(known, axis, keepdims)


@explained
def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmean([1.0, 3.0, float("nan")]).numpy().item()
        2.0
    """
    tensor = _floats(x)
    return _mean_of_known(_instead_of_nan(tensor, 0), ops.is_nan(tensor), axis, keepdims)


@explained
def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanvar([1.0, 3.0, float("nan")]).numpy().item()
        1.0
    """
    tensor = _floats(x)
    unknown = ops.is_nan(tensor)
    values = _instead_of_nan(tensor, 0)
    apart = values - _mean_of_known(values, unknown, axis, True)
    known_parts = ops.where(unknown, ops.zeros_like(apart), apart)
    return _mean_of_known(ops.square(known_parts), unknown, axis, keepdims)


@explained
def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanstd([1.0, 3.0, float("nan")]).numpy().item()
        1.0
    """
    return ops.sqrt(nanvar(x, axis, keepdims))


def _extreme(reduce: Any, x: Any, worst: float, axis: Any, keepdims: bool) -> Tensor:
    tensor = ops.convert_to_tensor(x)
    result: Tensor = reduce(_instead_of_nan(tensor, worst), axis, keepdims)
    if tensor.dtype not in FLOATS:
        return result
    unknown = ops.reduce_all(ops.is_nan(tensor), axis, keepdims)
    return ops.where(unknown, ops.constant(np.nan, tensor.dtype), result)


@explained
def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes of those that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmax([1.0, float("nan")]).numpy().item()
        1.0
    """
    return _extreme(reductions.max, x, -np.inf, axis, keepdims)


@explained
def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the least element over axes of those that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmin([1.0, float("nan")]).numpy().item()
        1.0
    """
    return _extreme(reductions.min, x, np.inf, axis, keepdims)


def _place(find: Any, x: Any, worst: float, axis: int | None, keepdims: bool) -> Tensor:
    tensor = ops.convert_to_tensor(x)
    index: Tensor = find(_instead_of_nan(tensor, worst), axis, keepdims)
    if tensor.dtype not in FLOATS:
        return index
    unknown = ops.reduce_all(ops.is_nan(tensor), axis, keepdims)
    return ops.where(unknown, ops.constant(-1, ops.int32), index)


@explained
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the largest element that is not NaN, int32; -1 where all are.

    Args:
        x: Numbers.
        axis: The axis along which it is; None: in all elements in a row.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanargmax([1.0, float("nan"), 2.0]).numpy().item()
        2
    """
    return _place(reductions.argmax, x, -np.inf, axis, keepdims)


@explained
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the least element that is not NaN, int32; -1 where all are.

    Args: as for `nanargmax`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanargmin([1.0, float("nan"), 2.0]).numpy().item()
        0
    """
    return _place(reductions.argmin, x, np.inf, axis, keepdims)


@explained
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return how far the largest element is from the least one, over axes.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ptp([1, 4]).numpy().item()
        3
    """
    tensor = ops.convert_to_tensor(x)
    return reductions.max(tensor, axis, keepdims) - reductions.min(tensor, axis, keepdims)


@explained
def average(x: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """Return the mean over an axis, of elements that weigh differently.

    Args:
        x: Numbers.
        axis: The axis; None: all.
        weights: What each weighs, of the shape of `x`, or a vector along the axis; None: all the
            same.

    Raises:
        ValueError: The axis is none.
        InvalidArgumentError: The weights' shape does not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.average([1.0, 2.0], weights=[3.0, 1.0]).numpy().item()
        1.25
    """
    if weights is None:
        return reductions.mean(x, axis)
    tensor, parts = _common_floats(ops.convert_to_tensor(x), ops.convert_to_tensor(weights))
    result: Tensor = averages.average(tensor, axis, parts)
    return result


@explained
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Return how far each element is from the next one along an axis.

    Args:
        a: Numbers; of booleans it is whether they differ.
        n: How often to do so.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diff([1, 4, 9]).numpy()
        array([3, 5], dtype=int32)
    """
    return averages.diff(ops.convert_to_tensor(a), n, axis)


@explained
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by trapezoids.

    Args:
        y: The values.
        x: Where they are; None: `dx` apart.
        dx: How far they are apart.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.trapezoid([1.0, 2.0, 3.0]).numpy().item()
        4.0
    """
    values = _floats(y)
    axis %= values.ndim
    step = ops.cast(dx, values.dtype) if x is None else diff(ops.cast(x, values.dtype), axis=axis)
    behind, before = ([slice(None)] * values.ndim for _ in range(2))
    behind[axis], before[axis] = slice(1, None), slice(None, -1)
    heights = (values[tuple(behind)] + values[tuple(before)]) * 0.5
    return ops.reduce_sum(heights * step, axis)


@explained
def corrcoef(x: Any) -> Tensor:
    """Return how each row goes with each other one: their covariances over their deviations.

    Args:
        x: A matrix whose rows are variables and whose columns observations.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.corrcoef([[1.0, 2.0], [2.0, 1.0]]).numpy().round(4)
        array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    tensor = _floats(x)
    if tensor.ndim < 2:
        return ops.divide(tensor, tensor) if not tensor.ndim else ops.constant(1.0, tensor.dtype)
    apart = tensor - ops.reduce_mean(tensor, -1, True)
    together = ops.matmul(apart, apart, transpose_b=True)
    deviations = ops.sqrt(ops.reduce_sum(ops.square(apart), -1, True))
    return together / ops.matmul(deviations, deviations, transpose_b=True)
