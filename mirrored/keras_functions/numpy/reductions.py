"""`keras.ops` over axes: sums, means and extremes, with or without NaN; and sums up to elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.keras_functions.promotion import (
    promoted_floats,
    summands,
    to_floats,
    to_numbers,
    to_truth,
)
from mirrored.numpy_functions import array_reductions
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS

Function = Callable[..., Tensor]


def _place(find: Function, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    """Return the place that an operation finds; booleans count as 0 and 1."""
    tensor = to_numbers(x)
    if axis is None:
        place = find(ops.reshape(tensor, [-1]), 0, output_type=ops.int32)
        return ops.reshape(place, [1] * tensor.ndim) if keepdims else place
    place = find(tensor, axis, output_type=ops.int32)
    return ops.expand_dims(place, axis) if keepdims else place


def _extreme(
    name: str, reduce: Function, choose: Function, x: Any, axis: Any, keepdims: bool, initial: Any
) -> Tensor:
    tensor = ops.convert_to_tensor(x)
    if not tensor.size and initial is None:
        raise InvalidArgumentError(f"Cannot compute the {name} of an empty tensor.")
    result = reduce(to_numbers(tensor), axis, keepdims)
    if initial is not None:
        result = choose(result, ops.cast(initial, result.dtype))
    return ops.cast(result, tensor.dtype)


def _scanned(scan: Function, x: Any, axis: int | None, dtype: Any) -> Tensor:
    tensor = to_numbers(x if dtype is None else ops.cast(x, dtype))
    return scan(ops.reshape(tensor, [-1]), 0) if axis is None else scan(tensor, axis)


def _instead_of_nan(x: Any, number: float) -> Tensor:
    return array_reductions.without_nan(ops.convert_to_tensor(x), number)


def _of_known(
    reduce: Function, worst: float, nothing: float, x: Any, axis: Any, keepdims: bool
) -> Tensor:
    """Return what a function finds where NaN counts as the worst, and of NaN alone nothing."""
    tensor = ops.convert_to_tensor(x)
    result = reduce(_instead_of_nan(tensor, worst), axis, keepdims)
    if tensor.dtype not in FLOATS:
        return result
    unknown = ops.reduce_all(ops.is_nan(tensor), axis, keepdims)
    return ops.where(unknown, ops.constant(nothing, result.dtype), result)


def sum(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes; that of booleans and short integers is of 32 bits.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sum([1, 2]).numpy().item()
        3
    """
    return ops.reduce_sum(summands(x), axis, keepdims)


def prod(
    x: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the product over axes; that of booleans and short integers is of 32 bits.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        dtype: The dtype; None: that of `x`, of 32 bits at least.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.prod([2, 3]).numpy().item()
        6
    """
    return ops.reduce_prod(summands(x) if dtype is None else ops.cast(x, dtype), axis, keepdims)


def mean(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.mean([1, 2]).numpy().item()
        1.5
    """
    return ops.reduce_mean(to_floats(x), axis, keepdims)


def var(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.var([1.0, 3.0]).numpy().item()
        1.0
    """
    return ops.reduce_variance(to_floats(x), axis, keepdims)


def std(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.std([1.0, 3.0]).numpy().item()
        1.0
    """
    return ops.reduce_std(to_floats(x), axis, keepdims)


def max(
    x: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        initial: A number that counts as one more element; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.max([1, 2]).numpy().item()
        2
    """
    return _extreme("max", ops.reduce_max, ops.maximum, x, axis, keepdims, initial)


def min(
    x: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    initial: TensorLike | None = None,
) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        initial: A number that counts as one more element; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.min([1, 2]).numpy().item()
        1
    """
    return _extreme("min", ops.reduce_min, ops.minimum, x, axis, keepdims, initial)


def amax(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.amax([1, 2]).numpy().item()
        2
    """
    return max(x, axis, keepdims)


def amin(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.amin([1, 2]).numpy().item()
        1
    """
    return min(x, axis, keepdims)


def all(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true, or not 0, over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.all([1, 0]).numpy().item()
        False
    """
    return ops.reduce_all(to_truth(x), axis, keepdims)


def any(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return whether an element is true, or not 0, over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.any([1, 0]).numpy().item()
        True
    """
    return ops.reduce_any(to_truth(x), axis, keepdims)


def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the largest element, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis along which it is; None: in all elements in a row.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argmax([1, 3, 2]).numpy().item()
        1
    """
    return _place(ops.argmax, x, axis, keepdims)


def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the smallest element, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis along which it is; None: in all elements in a row.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argmin([1, 3, 2]).numpy().item()
        0
    """
    return _place(ops.argmin, x, axis, keepdims)


def count_nonzero(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return how many elements are not 0, int32.

    Args:
        x: A tensor, an array or nested lists of numbers.
        axis: Over which axis or axes; None: all.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.count_nonzero([1, 0, 2]).numpy().item()
        2
    """
    return ops.count_nonzero(x, axis, dtype=ops.int32)


def cumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
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


def cumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the products of all elements up to each one.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cumprod([1, 2, 3]).numpy()
        array([1, 2, 6], dtype=int32)
    """
    return _scanned(ops.cumprod, x, axis, dtype)


def nancumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sums of all elements up to each one, in which NaN counts as 0.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nancumsum([1.0, float("nan"), 3.0]).numpy()
        array([1., 1., 4.], dtype=float32)
    """
    return cumsum(_instead_of_nan(x, 0), axis, dtype)


def nancumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Return the products of all elements up to each one, in which NaN counts as 1.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nancumprod([2.0, float("nan"), 3.0]).numpy()
        array([2., 2., 6.], dtype=float32)
    """
    return cumprod(_instead_of_nan(x, 1), axis, dtype)


def nansum(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
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
    return sum(_instead_of_nan(x, 0), axis, keepdims)


def nanprod(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes, in which NaN counts as 1.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanprod([2.0, float("nan")]).numpy().item()
        2.0
    """
    return prod(_instead_of_nan(x, 1), axis, keepdims)


def _mean_of_known(values: Tensor, unknown: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the mean of values that are 0 where they are unknown."""
    known = ops.cast(ops.logical_not(unknown), values.dtype)
    return ops.reduce_sum(values, axis, keepdims) / ops.reduce_sum(known, axis, keepdims)


def nanmean(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmean([1.0, 3.0, float("nan")]).numpy().item()
        2.0
    """
    tensor = to_floats(x)
    return _mean_of_known(_instead_of_nan(tensor, 0), ops.is_nan(tensor), axis, keepdims)


def nanvar(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanvar([1.0, 3.0, float("nan")]).numpy().item()
        1.0
    """
    tensor = to_floats(x)
    unknown = ops.is_nan(tensor)
    values = _instead_of_nan(tensor, 0)
    apart = values - _mean_of_known(values, unknown, axis, True)
    known_parts = ops.where(unknown, ops.zeros_like(apart), apart)
    return _mean_of_known(ops.square(known_parts), unknown, axis, keepdims)


def nanstd(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes of the elements that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanstd([1.0, 3.0, float("nan")]).numpy().item()
        1.0
    """
    return ops.sqrt(nanvar(x, axis, keepdims))


def nanmax(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes of those that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmax([1.0, float("nan")]).numpy().item()
        1.0
    """
    return _of_known(max, -np.inf, np.nan, x, axis, keepdims)


def nanmin(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the least element over axes of those that are not NaN.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmin([1.0, float("nan")]).numpy().item()
        1.0
    """
    return _of_known(min, np.inf, np.nan, x, axis, keepdims)


def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
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
    return _of_known(argmax, -np.inf, -1, x, axis, keepdims)


def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the least element that is not NaN, int32; -1 where all are.

    Args: as for `nanargmax`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanargmin([1.0, float("nan"), 2.0]).numpy().item()
        0
    """
    return _of_known(argmin, np.inf, -1, x, axis, keepdims)


def ptp(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return how far the largest element is from the least one, over axes.

    Args: as for `nansum`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ptp([1, 4]).numpy().item()
        3
    """
    tensor = ops.convert_to_tensor(x)
    return max(tensor, axis, keepdims) - min(tensor, axis, keepdims)


def average(x: TensorLike, axis: int | None = None, weights: TensorLike | None = None) -> Tensor:
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
        return mean(x, axis)
    tensor, parts = promoted_floats(ops.convert_to_tensor(x), ops.convert_to_tensor(weights))
    result: Tensor = array_reductions.average(tensor, axis, parts)
    return result


def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
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
    return array_reductions.diff(ops.convert_to_tensor(a), n, axis)


def trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1
) -> Tensor:
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
    values = to_floats(y)
    axis %= values.ndim
    step = ops.cast(dx, values.dtype) if x is None else diff(ops.cast(x, values.dtype), axis=axis)
    behind, before = array_reductions.neighbours(values, axis)
    heights = (behind + before) * 0.5
    return ops.reduce_sum(heights * step, axis)


def corrcoef(x: TensorLike) -> Tensor:
    """Return how each row goes with each other one: their covariances over their deviations.

    Args:
        x: A matrix whose rows are variables and whose columns observations.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.corrcoef([[1.0, 2.0], [2.0, 1.0]]).numpy().round(4)
        array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    tensor = to_floats(x)
    if tensor.ndim < 2:
        return ops.divide(tensor, tensor) if not tensor.ndim else ops.constant(1.0, tensor.dtype)
    apart = tensor - ops.reduce_mean(tensor, -1, True)
    together = ops.matmul(apart, apart, transpose_b=True)
    deviations = ops.sqrt(ops.reduce_sum(ops.square(apart), -1, True))
    return together / ops.matmul(deviations, deviations, transpose_b=True)


explain_functions(__name__, all_but="")
