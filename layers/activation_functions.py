"""Keras' activations, each a formula of operations.

Their names, arguments and defaults are Keras 3's; `activations` looks them up.
"""

import math
from collections.abc import Callable

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._logging import warn_caller
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor
from mirrored.ops.activations import ANY_ENTROPY, remember


def linear(x: Tensor) -> Tensor:
    """Return ``x`` itself.

    Args:
        x: Any tensor.

    Example:
        >>> from mirrored import ops
        >>> linear(ops.constant([-1.0, 2.0])).numpy().tolist()
        [-1.0, 2.0]
    """
    return x


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> from mirrored import ops
        >>> sigmoid(ops.constant([0.0])).numpy().tolist()
        [0.5]
    """
    x = ops.convert_to_tensor(x)
    return remember(ops.sigmoid(x), ANY_ENTROPY, x)


def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent of ``x``, elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> from mirrored import ops
        >>> tanh(ops.constant([0.0])).numpy().tolist()
        [0.0]
    """
    return ops.tanh(x)


def softmax(x: Tensor, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Return exp(x) / sum(exp(x)), the sum running along ``axis``.

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis of the classes, or several of them.

    Raises:
        ValueError: There is no such axis, or one is given twice.

    Example:
        >>> from mirrored import ops
        >>> softmax(ops.constant([[3.0, 3.0]])).numpy().tolist()
        [[0.5, 0.5]]
    """
    x = ops.convert_to_tensor(x)
    if isinstance(axis, tuple | list):
        probabilities = along_axes(ops.softmax, x, tuple(axis))
    else:
        if -x.ndim <= axis < x.ndim and x.shape[axis] == 1:
            warn_caller(
                f"You are using a softmax over axis {axis} of a tensor of shape {x.shape}. This "
                "axis has size 1. The softmax operation will always return the value 1, which is "
                "likely not what you intended. Did you mean to use a sigmoid instead?",
            )
        probabilities = ops.softmax(x, axis=axis)
    return remember(probabilities, ANY_ENTROPY, x)


def relu(
    x: TensorLike,
    negative_slope: float = 0.0,
    max_value: float | None = None,
    threshold: float = 0.0,
) -> Tensor:
    """Return max(x, 0), elementwise, or what the arguments make of it.

    Args:
        x: A tensor of numbers, any shape.
        negative_slope: What ``x - threshold`` is multiplied by below the threshold.
        max_value: The largest result; None: there is none.
        threshold: Up to here the result is 0, or follows ``negative_slope``.

    Example:
        >>> relu([-1.0, 2.0]).numpy().tolist()
        [0.0, 2.0]
    """
    x = ops.convert_to_tensor(x)
    if negative_slope != 0 and max_value is None and threshold == 0:
        return ops.leaky_relu(x, negative_slope)
    if threshold != 0:
        above = ops.where(ops.greater(x, threshold), x, 0)
    else:
        above = ops.relu6(x) if max_value == 6 else ops.relu(x)
    if max_value is not None and not (max_value == 6 and threshold == 0):
        above = ops.clip_by_value(above, 0, max_value)
    if negative_slope == 0:
        return above
    return above - negative_slope * ops.relu(threshold - x)


def leaky_relu(x: TensorLike, negative_slope: float = 0.2) -> Tensor:
    """Return ``x`` where it is above 0, and ``negative_slope`` times ``x`` elsewhere.

    Args:
        x: A tensor of numbers, any shape.
        negative_slope: The slope on the left of 0.

    Example:
        >>> leaky_relu([-1.0, 2.0], negative_slope=0.5).numpy().tolist()
        [-0.5, 2.0]
    """
    return ops.leaky_relu(x, negative_slope)


def relu6(x: TensorLike) -> Tensor:
    """Return min(max(x, 0), 6), elementwise.

    Args:
        x: A tensor of numbers, any shape.

    Example:
        >>> relu6([-1.0, 2.0, 7.0]).numpy().tolist()
        [0.0, 2.0, 6.0]
    """
    return ops.relu6(x)


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is above 0, and ``alpha * (exp(x) - 1)`` elsewhere.

    Clevert et al., 2015: https://arxiv.org/abs/1511.07289

    Args:
        x: A floating-point tensor, any shape.
        alpha: Less it is what large negative numbers give.

    Example:
        >>> elu([-1000.0, 2.0]).numpy().tolist()
        [-1.0, 2.0]
    """
    x = ops.convert_to_tensor(x)
    result = ops.elu(x)
    return result if alpha == 1 else ops.leaky_relu(result, alpha)


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is above 0, and ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Barron, 2017: https://arxiv.org/abs/1704.07483

    Args:
        x: A floating-point tensor, any shape.
        alpha: Less it is what large negative numbers give.

    Example:
        >>> celu([-1000.0, 2.0], alpha=2.0).numpy().tolist()
        [-2.0, 2.0]
    """
    return ops.maximum(x, 0.0) + alpha * ops.expm1(ops.minimum(x, 0.0) / alpha)


def selu(x: TensorLike) -> Tensor:
    """Return ``elu`` with the scales that keep mean 0 and variance 1 from layer to layer.

    Klambauer et al., 2017: https://arxiv.org/abs/1706.02515

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> round(float(selu(-1000.0)), 4)
        -1.7581
    """
    return ops.selu(x)


def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """Return ``x`` times the probability that a normal number is below it.

    Hendrycks and Gimpel, 2016: https://arxiv.org/abs/1606.08415

    Args:
        x: A floating-point tensor, any shape.
        approximate: Whether to compute the probability by ``tanh``.

    Raises:
        ValueError: The tensor is not of floats.

    Example:
        >>> gelu([-100.0, 100.0]).numpy().tolist()
        [-0.0, 100.0]
    """
    return ops.gelu(x, approximate)


def silu(x: TensorLike) -> Tensor:
    """Return ``x * sigmoid(x)``, elementwise; its other name is ``swish``.

    Ramachandran et al., 2017: https://arxiv.org/abs/1710.05941

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> silu([0.0, 1000.0]).numpy().tolist()
        [0.0, 1000.0]
    """
    return ops.silu(x)


swish = silu


def mish(x: TensorLike) -> Tensor:
    """Return ``x * tanh(softplus(x))``, elementwise.

    Misra, 2019: https://arxiv.org/abs/1908.08681

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> mish([0.0, 1000.0]).numpy().tolist()
        [0.0, 1000.0]
    """
    return ops.multiply(x, ops.tanh(ops.softplus(x)))


def softplus(x: TensorLike) -> Tensor:
    """Return log(exp(x) + 1), elementwise, without overflow.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> softplus([-1000.0, 1000.0]).numpy().tolist()
        [0.0, 1000.0]
    """
    return ops.softplus(x)


def softsign(x: TensorLike) -> Tensor:
    """Return ``x / (abs(x) + 1)``, elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> softsign([-1.0, 3.0]).numpy().tolist()
        [-0.5, 0.75]
    """
    return ops.softsign(x)


def log_sigmoid(x: TensorLike) -> Tensor:
    """Return the logarithm of ``sigmoid(x)``, elementwise, without overflow.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> log_sigmoid([-1000.0]).numpy().tolist()
        [-1000.0]
    """
    return ops.log_sigmoid(x)


def log_softmax(x: TensorLike, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Return the logarithm of ``softmax(x, axis)``.

    Args:
        x: A floating-point tensor of rank 1 or more.
        axis: The axis of the classes, or several axes.

    Raises:
        ValueError: There is no such axis, or one is repeated.

    Example:
        >>> log_softmax([-1000.0, 0.0]).numpy().tolist()
        [-1000.0, 0.0]
    """
    if isinstance(axis, tuple | list):
        return along_axes(ops.log_softmax, ops.convert_to_tensor(x), tuple(axis))
    return ops.log_softmax(x, axis=axis)


def along_axes(function: Callable[..., Tensor], x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return a function of one axis along several axes, which are joined to one for the call.

    Args:
        function: Takes a tensor and works along its last axis; it keeps the shape.
        x: A tensor.
        axes: Different axes of it; without any, each element is an axis of size 1.

    Raises:
        ValueError: There is no such axis, or one is repeated.

    Example:
        >>> along_axes(ops.softmax, ops.zeros((2, 2)), (0, 1)).numpy().tolist()
        [[0.25, 0.25], [0.25, 0.25]]
    """
    last = [axis % x.ndim for axis in axes if -x.ndim <= axis < x.ndim]
    if len(last) < len(axes) or len(set(last)) < len(last):
        raise ValueError(
            f"`axis` must be an axis of the tensor, or several different ones. Received: "
            f"axis={axes} for a tensor of shape {x.shape}."
        )
    order = [*(axis for axis in range(x.ndim) if axis not in last), *last]
    moved = ops.transpose(x, order)
    kept = moved.shape[: x.ndim - len(last)]
    flat = ops.reshape(moved, (*kept, math.prod(moved.shape[len(kept) :])))
    back = sorted(range(x.ndim), key=order.__getitem__)
    return ops.transpose(ops.reshape(function(flat), moved.shape), back)


def exponential(x: TensorLike) -> Tensor:
    """Return exp(x), elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> exponential([0.0]).numpy().tolist()
        [1.0]
    """
    return ops.exp(x)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """Return ``x / 6 + 0.5``, cut off at 0 and at 1.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> hard_sigmoid([-3.0, 0.0, 4.0]).numpy().tolist()
        [0.0, 0.5, 1.0]
    """
    return ops.relu6(ops.convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: TensorLike) -> Tensor:
    """Return ``x * hard_sigmoid(x)``, elementwise; its other name is ``hard_swish``.

    Howard et al., 2019: https://arxiv.org/abs/1905.02244

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> hard_silu([-3.0, 0.0, 4.0]).numpy().tolist()
        [-0.0, 0.0, 4.0]
    """
    return ops.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def hard_tanh(x: TensorLike) -> Tensor:
    """Return ``x``, cut off at -1 and at 1.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> hard_tanh([-3.0, 0.5]).numpy().tolist()
        [-1.0, 0.5]
    """
    return ops.clip_by_value(x, -1.0, 1.0)


def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
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


def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
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


def tanh_shrink(x: TensorLike) -> Tensor:
    """Return ``x - tanh(x)``, elementwise.

    Args:
        x: A floating-point tensor, any shape.

    Example:
        >>> tanh_shrink([0.0, 1000.0]).numpy().tolist()
        [0.0, 999.0]
    """
    return ops.subtract(x, ops.tanh(x))


def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor:
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


def squareplus(x: TensorLike, b: float = 4) -> Tensor:
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


def sparse_plus(x: TensorLike) -> Tensor:
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


def sparse_sigmoid(x: TensorLike) -> Tensor:
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


def glu(x: TensorLike, axis: int = -1) -> Tensor:
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


def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
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
            f"`axis` must be an axis of the values. Received: x.shape={x.shape} with axis={axis}"
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


explain_functions(
    __name__, all_but="along_axes exponential linear mish silu softplus softsign tanh"
)
