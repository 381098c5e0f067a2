"""Keras' activations that are 0 over a range, or choose between two halves; formulas too.

Their names, arguments and defaults are Keras 3's; `activations` looks them up.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor


@explained
def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return ``x`` where it is farther from 0 than the threshold, and 0 elsewhere.

    Args:
        x: A floating-point tensor, any shape.
        threshold: The threshold.

    Example:
        >>> hard_shrink([-0.75, 0.25, 2.0]).numpy().tolist()
        [-0.75, 0.0, 2.0]
    """
    x = ops.convert_to_tensor(x)
    return ops.where(ops.greater(ops.abs(x), threshold), x, 0)


@explained
def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return ``x`` brought nearer to 0 by the threshold, and 0 where that goes beyond it.

    Args:
        x: A floating-point tensor, any shape.
        threshold: The threshold.

    Example:
        >>> soft_shrink([-0.75, 0.25, 2.0]).numpy().tolist()
        [-0.25, 0.0, 1.5]
    """
    x = ops.convert_to_tensor(x)
    below = ops.where(ops.less(x, -threshold), x + threshold, 0)
    return ops.where(ops.greater(x, threshold), x - threshold, below)


@explained
def tanh_shrink(x: Any) -> Tensor:
    """Return ``x - tanh(x)``, elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> tanh_shrink([0.0, 1000.0]).numpy().tolist()
        [0.0, 999.0]
    """
    return ops.subtract(x, ops.tanh(x))


@explained
def threshold(x: Any, threshold: float, default_value: float) -> Tensor:
    """Return ``x`` where it is above a threshold, and a value elsewhere.

    Args:
        x: A tensor of numbers, any shape.
        threshold: The threshold.
        default_value: The value elsewhere.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.activations.threshold([1.0, 3.0], 2.0, -1.0).numpy().tolist()
        [-1.0, 3.0]
    """
    x = ops.convert_to_tensor(x)
    return ops.where(ops.greater(x, threshold), x, default_value)


@explained
def squareplus(x: Any, b: float = 4) -> Tensor:
    """Return ``(x + sqrt(x^2 + b)) / 2``, elementwise.

    Barron, Squareplus, 2021: https://arxiv.org/abs/2112.11687

    Args:
        x: A floating-point tensor, any shape.
        b: How smooth the bend at 0 is.

    Example:
        >>> squareplus([0.0, 1.5]).numpy().tolist()
        [1.0, 2.0]
    """
    return ops.add(x, ops.sqrt(ops.square(x) + b)) / 2


@explained
def sparse_plus(x: Any) -> Tensor:
    """Return 0 up to -1, ``x`` from 1 on, and ``(x + 1)^2 / 4`` between them.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> sparse_plus([-2.0, 0.0, 3.0]).numpy().tolist()
        [0.0, 0.25, 3.0]
    """
    x = ops.convert_to_tensor(x)
    bent = ops.where(ops.less(x, 1.0), 0.25 * ops.square(x + 1.0), x)
    return ops.where(ops.less_equal(x, -1.0), 0, bent)


@explained
def sparse_sigmoid(x: Any) -> Tensor:
    """Return ``(x + 1) / 2``, and 0 up to -1 and 1 from 1 on.

    Blondel et al., Learning with Fenchel-Young Losses, 2019: https://arxiv.org/abs/1901.02324

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> sparse_sigmoid([-2.0, 0.0, 3.0]).numpy().tolist()
        [0.0, 0.5, 1.0]
    """
    x = ops.convert_to_tensor(x)
    rising = ops.where(ops.greater_equal(x, 1.0), 1, 0.5 * (x + 1.0))
    return ops.where(ops.less_equal(x, -1.0), 0, rising)


@explained
def glu(x: Any, axis: int = -1) -> Tensor:
    """Return one half of ``x`` times the sigmoid of the other one.

    Dauphin et al., Language Modeling with Gated Convolutional Networks, 2016:
    https://arxiv.org/abs/1612.08083

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis that is cut in the middle, of an even size.

    Raises:
        ValueError: The size of the axis is odd.

    Example:
        >>> glu([2.0, 4.0, 0.0, 1000.0]).numpy().tolist()
        [1.0, 4.0]
    """
    x = ops.convert_to_tensor(x)
    if x.shape[axis] % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = ops.split(x, 2, axis=axis)
    return first * ops.sigmoid(second)


@explained
def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """Return ``max(x - t, 0)``, where Keras' t is above the paper's unless one value is left.

    Keras adds up the sums of the largest values, where Martins and Astudillo, From Softmax to
    Sparsemax, 2016 (https://arxiv.org/abs/1602.02068) have the last of them. So what it returns,
    as this does, need not add up to 1 where several values are left.

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis of the values.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        >>> sparsemax([1.0, 3.0, 2.0]).numpy().tolist()
        [0.0, 1.0, 0.0]
        >>> sparsemax([0.5, 0.25]).numpy().tolist()  # The paper's are 0.625 and 0.375.
        [0.375, 0.125]
    """
    x = ops.convert_to_tensor(x)
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(
            f"`axis` is one of the values' axes. Received: x.shape={x.shape} with axis={axis}"
        )
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    counts = ops.reshape(ops.range(1, x.shape[axis] + 1, dtype=x.dtype), shape)
    ordered = ops.sort(x, axis=axis, direction="DESCENDING")
    sums = ops.cumsum(ordered, axis=axis)
    left = ops.greater(ordered - (sums - 1.0) / counts, 0)
    total = ops.reduce_sum(ops.where(left, sums, 0), axis=axis, keepdims=True)
    count = ops.reduce_sum(ops.cast(left, x.dtype), axis=axis, keepdims=True)
    return ops.maximum(x - (total - 1.0) / count, 0)
