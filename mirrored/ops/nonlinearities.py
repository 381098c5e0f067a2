"""The activations of neural networks that are made of other functions.

Two kernels, those of `elu` and `softsign`; all others are formulas, whose gradients are right where
the functions have kinks, and at infinity where they are TensorFlow's NaN.
"""

from typing import Any

from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._types import TensorLike
from mirrored.ops.activations import RELU, SIGMOID, SOFTPLUS, TANH
from mirrored.ops.comparison import GREATER, LESS
from mirrored.ops.conversion import adopt
from mirrored.ops.elementwise import ABS, MINIMUM, MUL_NO_NAN, piecewise, unary
from mirrored.ops.op import OpCall
from mirrored.ops.powers import RECIPROCAL, SQUARE
from mirrored.ops.shaping import CAST, concat
from mirrored.ops.spec import FLOATS, INTEGERS, float32
from mirrored.ops.special_functions import ERFC
from mirrored.ops.tensor import Tensor

# Klambauer et al., "Self-Normalizing Neural Networks", 2017, give both to as many digits.
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_ROOT_HALF = 0.7071067811865476
_ROOT_TWO_OVER_PI = 0.7978845608028654


def _elu(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    # exp(x) - 1 is 2 t / (1 - t) of t = tanh(x / 2), which NumPy has in a third of the time.
    below = scratch[0]
    xp.minimum(x, 0, out=out)
    xp.multiply(out, 0.5, out=out)
    xp.tanh(out, out=out)
    xp.subtract(1, out, out=below)
    xp.multiply(out, 2, out=out)
    xp.divide(out, below, out=out)
    xp.maximum(x, 0, out=below)
    xp.add(out, below, out=out)
    xp.copysign(out, x, out=out)  # Zeros keep their sign.


def _grad_elu(call: OpCall, g: Tensor) -> Tensor:
    y = call.output
    # exp(x) is y + 1 on the left of 0.
    return g * (MUL_NO_NAN(y, CAST(LESS(y, 0.0), dtype=y.dtype)) + 1.0)


def _softsign(xp: Any, out: Any, x: Any) -> None:
    xp.absolute(x, out=out)
    xp.add(out, 1, out=out)
    xp.divide(x, out, out=out)


def _grad_softsign(call: OpCall, g: Tensor) -> Tensor:
    return g * SQUARE(RECIPROCAL(ABS(call.inputs[0]) + 1.0))


ELU = piecewise("Elu", _elu, _grad_elu, scratch=1)
SOFTSIGN = unary("Softsign", _softsign, _grad_softsign, may_alias=())


def _either(condition: Tensor, x: Tensor, yes: float, no: float) -> Tensor:
    """Return x times one number where a condition holds, and times another one elsewhere."""
    held = CAST(condition, dtype=x.dtype)
    return x * (held * yes + (1.0 - held) * no)


# ---------------------------------------------------------------------------- public functions


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return x where it is above 0, and exp(x) - 1 elsewhere.

    Clevert et al., Fast and Accurate Deep Network Learning by Exponential Linear Units, 2015:
    https://arxiv.org/abs/1511.07289

    Example:
        >>> import mirrored as mr
        >>> mr.nn.elu([-1000.0, 2.0]).numpy()
        array([-1.,  2.], dtype=float32)
    """
    return ELU(features)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return 1.0507 x where it is not below 0, and 1.7581 (exp(x) - 1) elsewhere.

    Klambauer et al., Self-Normalizing Neural Networks, 2017: https://arxiv.org/abs/1706.02515

    Example:
        >>> import mirrored as mr
        >>> mr.nn.selu([0.0, 1.0]).numpy()
        array([0.      , 1.050701], dtype=float32)
    """
    y = ELU(features)
    return _either(LESS(y, 0.0), y, _SELU_SCALE * _SELU_ALPHA, _SELU_SCALE)


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Return x where it is above 0, and alpha x elsewhere.

    Args:
        features: A tensor of floats; integers become float32.
        alpha: The slope on the left of 0, and at 0.
        name: Accepted for compatibility.

    Raises:
        TypeError: `alpha` is no number.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.leaky_relu([-1.0, 2.0]).numpy()
        array([-0.2,  2. ], dtype=float32)
    """
    x = adopt(features, None)
    if x.dtype in INTEGERS:
        x = CAST(x, dtype=float32)
    slope = as_real(alpha)
    if slope is None:
        raise TypeError(f"Expected float for argument 'alpha' not {alpha!r}.")
    return _either(GREATER(x, 0.0), x, 1.0, slope)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """Return min(max(x, 0), 6), element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.relu6([-1.0, 2.0, 7.0]).numpy()
        array([0., 2., 6.], dtype=float32)
    """
    y = RELU(features)
    return MINIMUM(adopt(6, y.dtype), y)  # In this order: at 6 there is no slope.


def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """Return max(x, 0) and max(-x, 0), joined along an axis, which is twice as long.

    Shang et al., Understanding and Improving Convolutional Neural Networks via Concatenated
    Rectified Linear Units, 2016: https://arxiv.org/abs/1603.05201

    Args:
        features: A tensor of numbers, of rank 1 or more.
        axis: The axis to join along.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.crelu([-1.0, 2.0]).numpy()
        array([0., 2., 1., 0.], dtype=float32)
    """
    x = adopt(features, None)
    return RELU(concat([x, -x], axis))


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """Return x times the probability that a normal number is below x.

    Hendrycks and Gimpel, Gaussian Error Linear Units, 2016: https://arxiv.org/abs/1606.08415

    Args:
        features: A tensor of floats.
        approximate: Whether to compute the probability by `tanh`, to three digits.
        name: Accepted for compatibility.

    Raises:
        ValueError: The tensor is not of floats.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.gelu([-100.0, 0.0, 100.0]).numpy()
        array([ -0.,   0., 100.], dtype=float32)
    """
    x = adopt(features, None)
    if x.dtype not in FLOATS:
        raise ValueError(
            "`features.dtype` must be a floating point tensor. Received: "
            f"features.dtype={x.dtype.name}. Cast it with mr.cast."
        )
    if approximate:
        inner = _ROOT_TWO_OVER_PI * (x + 0.044715 * (SQUARE(x) * x))
        return 0.5 * x * (1.0 + TANH(inner))
    return 0.5 * x * ERFC(-x * _ROOT_HALF)


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """Return x sigmoid(beta x), element by element; `nn.swish` is the same function.

    Ramachandran et al., Searching for Activation Functions, 2017:
    https://arxiv.org/abs/1710.05941

    Args:
        features: A tensor of floats.
        beta: A number, or a tensor of a shape that broadcasts; it takes the dtype of `features`.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.silu([0.0, 1000.0]).numpy()
        array([   0., 1000.], dtype=float32)
    """
    x = adopt(features, None)
    return x * SIGMOID(CAST(adopt(beta, x.dtype), dtype=x.dtype) * x)


swish = silu


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Return log(1 / (1 + exp(-x))), element by element, without overflow.

    Example:
        >>> import mirrored as mr
        >>> mr.math.log_sigmoid([1000.0, -1000.0]).numpy()
        array([   -0., -1000.], dtype=float32)
    """
    return -SOFTPLUS(-adopt(x, None))


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Return x / (1 + |x|), element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.softsign([-1.0, 3.0]).numpy()
        array([-0.5 ,  0.75], dtype=float32)
    """
    return SOFTSIGN(features)


explain_functions(__name__)
