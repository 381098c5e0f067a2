"""Variances and counts over axes, and normalization by moments: formulas, as TensorFlow's."""

import math
from collections.abc import Sequence

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, DTypeLike, TensorLike
from mirrored.ops.comparison import NOT_EQUAL
from mirrored.ops.conversion import adopt, constant
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.elementwise import ADD, DIV, MUL, SUB, divide_no_nan
from mirrored.ops.powers import RECIPROCAL, RSQRT, SQRT, SQUARE, SQUARED_DIFFERENCE
from mirrored.ops.reduction import reduce_mean, reduce_sum
from mirrored.ops.shaping import CAST, cast, squeeze, stop_gradient
from mirrored.ops.spec import INTEGERS, float32, int64
from mirrored.ops.tensor import Tensor


def reduce_variance(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the mean of the squared distances from the mean, over axes.

    Args and errors: as for `reduce_sum`.

    Raises:
        TypeError: The tensor is of integers.

    Example:
        >>> import mirrored as mr
        >>> mr.math.reduce_variance([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
        array([0.25, 0.25], dtype=float32)
    """
    x = adopt(input_tensor, None)
    if x.dtype in INTEGERS:
        raise TypeError(
            "Input must be either real or complex. Received integer type "
            f"{x.dtype.name}. Cast it with mr.cast."
        )
    distances = x - reduce_mean(x, axis, True)
    return reduce_mean(SQUARE(distances), axis, keepdims)


def reduce_std(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the standard deviation over axes, the root of `reduce_variance`.

    Args and errors: as for `reduce_variance`.

    Example:
        >>> import mirrored as mr
        >>> mr.math.reduce_std([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
        array([0.5, 0.5], dtype=float32)
    """
    return SQRT(reduce_variance(input_tensor, axis, keepdims))


def moments(
    x: TensorLike,
    axes: int | Sequence[int],
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes.

    Args:
        x: The tensor, of floats.
        axes: One axis, or several.
        shift: Accepted for compatibility; TensorFlow does not use it either.
        keepdims: Whether the reduced axes stay, with size 1.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mean, variance = mr.nn.moments([[1.0, 2.0], [3.0, 4.0]], [1])
        >>> mean.numpy(), variance.numpy()
        (array([1.5, 3.5], dtype=float32), array([0.25, 0.25], dtype=float32))
    """
    x = adopt(x, None)
    mean = reduce_mean(x, axes, True)
    variance = reduce_mean(SQUARED_DIFFERENCE(x, stop_gradient(mean)), axes, True)
    return (mean, variance) if keepdims else (squeeze(mean, axes), squeeze(variance, axes))


def count_nonzero(
    input: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """Return how many elements are not 0, over axes.

    Args:
        input: The tensor.
        axis: One axis, several, or None for all.
        keepdims: Whether the reduced axes stay, with size 1.
        dtype: The dtype of the result.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.math.count_nonzero([[0.0, 2.0], [3.0, 4.0]], axis=1).numpy()
        array([1, 2])
    """
    x = adopt(input, None)
    counted = cast(NOT_EQUAL(x, ZEROS_LIKE(x)), int64)
    return cast(reduce_sum(counted, axis, bool(keepdims)), dtype)


def weighted_moments(
    x: TensorLike,
    axes: AxisLike,
    frequency_weights: TensorLike,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes, of elements that count as often as weights say.

    Args:
        x: The tensor, of floats.
        axes: One axis, several, or None for all.
        frequency_weights: How often each element counts, of a shape that broadcasts with that of
            `x`; they take its dtype.
        keepdims: Whether the reduced axes stay, with size 1.
        name: Accepted for compatibility.

    Returns:
        Both, which are 0 where the weights together are.

    Raises:
        InvalidArgumentError: There is no such axis, one is named twice, the shapes do not fit, or
            it holds no floats.

    Example:
        >>> import mirrored as mr
        >>> mean, variance = mr.nn.weighted_moments([1.0, 2.0], [0], [1.0, 3.0])
        >>> float(mean), float(variance)
        (1.75, 0.1875)
    """
    x, weights = adopt(x, None), adopt(frequency_weights, None)
    weights = cast(weights, x.dtype)
    counts = reduce_sum(ADD(weights, ZEROS_LIKE(x)), axes, True)
    mean = divide_no_nan(reduce_sum(MUL(weights, x), axes, True), counts)
    distances = MUL(weights, SQUARED_DIFFERENCE(x, mean))
    variance = divide_no_nan(reduce_sum(distances, axes, True), counts)
    return (mean, variance) if keepdims else (squeeze(mean, axes), squeeze(variance, axes))


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Return the part of the elements that are 0, as float32; that of nothing is NaN.

    Args:
        value: The tensor, of any dtype.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.zero_fraction([0.0, 1.0, 2.0, 0.0]))
        0.5
    """
    x = adopt(value, None)
    zeros = cast(x.size - count_nonzero(x), float32)
    return DIV(zeros, float(x.size))


def sufficient_statistics(
    x: TensorLike,
    axes: Sequence[int],
    shift: TensorLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return how many elements there are over axes, their sum and that of their squares.

    `normalize_moments` makes the mean and the variance of them.

    Args:
        x: The tensor.
        axes: A list of axes.
        shift: What is subtracted from the elements before, of the same dtype, near their mean: the
            sums then lose fewer digits. None: nothing.
        keepdims: Whether the reduced axes stay, with size 1.
        name: Accepted for compatibility.

    Returns:
        The count, a scalar of the tensor's dtype, both sums, and `shift`.

    Raises:
        InvalidArgumentError: There is no such axis, the dtypes differ, or it holds booleans.
        TypeError: `axes` is no list.

    Example:
        >>> import mirrored as mr
        >>> count, total, squares, _ = mr.nn.sufficient_statistics([1.0, 2.0, 4.0], [0])
        >>> float(count), float(total), float(squares)
        (3.0, 7.0, 21.0)
    """
    x, distinct = adopt(x, None), list({*axes})
    if shift is None:
        total, squares = x, SQUARE(x)
    else:
        shift = adopt(shift, None)
        total, squares = SUB(x, shift), SQUARED_DIFFERENCE(x, shift)
    sums = reduce_sum(total, distinct, keepdims), reduce_sum(squares, distinct, keepdims)
    count = math.prod(x.shape[axis] for axis in distinct)
    return constant(count, x.dtype), *sums, shift


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + variance_epsilon) * scale + offset.

    Ioffe and Szegedy, Batch Normalization, 2015: https://arxiv.org/abs/1502.03167

    Args:
        x: The tensor, of floats.
        mean: A tensor of a shape that broadcasts, as `moments` returns it.
        variance: The same.
        offset: What is added, a tensor of a shape that broadcasts; None: nothing.
        scale: What is multiplied by; None: nothing.
        variance_epsilon: A small number, so that nothing is divided by 0.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.batch_normalization([1.0, 5.0], 3.0, 4.0, 1.0, None, 0.0).numpy()
        array([0., 2.], dtype=float32)
    """
    values = adopt(x, None)
    factor = RSQRT(adopt(variance, None) + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    shift = -(mean * factor) if offset is None else offset - mean * factor
    return values * CAST(factor, dtype=values.dtype) + CAST(shift, dtype=values.dtype)


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: TensorLike | None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of numbers that were counted and summed.

    Args:
        counts: How many there are, a scalar.
        mean_ss: Their sum, or that of their distances from `shift`.
        variance_ss: The sum of the squares of the same.
        shift: What was subtracted before; None: nothing was.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mean, variance = mr.nn.normalize_moments(2.0, [4.0], [10.0], None)
        >>> mean.numpy(), variance.numpy()
        (array([2.], dtype=float32), array([1.], dtype=float32))
    """
    share = RECIPROCAL(counts)
    distance = share * mean_ss
    mean = distance if shift is None else distance + shift
    return mean, share * variance_ss - SQUARE(distance)


explain_functions(__name__, all_but="")
