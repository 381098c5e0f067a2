"""Normalization by moments that are given, each a formula of ops, as TensorFlow has it."""

from typing import Any

from mirrored._arguments import explained
from mirrored.ops.conversion import adopt
from mirrored.ops.powers import RECIPROCAL, RSQRT, SQUARE
from mirrored.ops.shaping import CAST
from mirrored.ops.tensor import Tensor


@explained
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
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


@explained
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
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
