"""Powers and roots, exponentials and logarithms, with their gradients where they have no slope.

There the gradients are TensorFlow's: that of a root, of 1/sqrt(x) and of `reciprocal` is 0 where
nothing flows in, also at 0, infinity and NaN; those of the others are NaN there.
"""

from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explained
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.elementwise import MUL_NO_NAN, binary, clear_masked, mask_of, mask_zeros, unary
from mirrored.ops.op import Check, Grads, OpCall
from mirrored.ops.shaping import CAST
from mirrored.ops.spec import FLOATS, FLOATS_AND_INDICES, INTEGERS, NUMBERS, SIGNED
from mirrored.ops.tensor import Tensor

# ---------------------------------------------------------------------------- gradients


def _sqrt_grad(xp: Any, out: Any, g: Any, y: Any, *, workspace: Any) -> None:
    kept = workspace[0]
    mask_zeros(xp, g, kept)
    xp.multiply(g, 0.5, out=out)
    xp.divide(out, y, out=out)
    clear_masked(xp, out, kept)


def _grad_sqrt_grad(call: OpCall, g: Tensor) -> Grads:
    by_y = g / call.inputs[1]
    return [by_y * 0.5, lambda: -(by_y * call.output)]


SQRT_GRAD = binary(
    "SqrtGrad",
    _sqrt_grad,
    _grad_sqrt_grad,
    FLOATS,
    workspace=lambda g, y: (mask_of(g),),
    may_alias=(0,),
)


def _grad_rsqrt(call: OpCall, g: Tensor) -> Tensor:
    y = call.output
    return MUL_NO_NAN(y * -0.5 * (y * y), g)


def _grad_pow(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs

    def by_exponent() -> Tensor:
        # The logarithm of a base that is not positive has no real value; TensorFlow takes 0.
        return g * call.output * MUL_NO_NAN(LOG(x), CAST(x > 0.0, dtype=x.dtype))

    return [lambda: g * (y * x ** (y - 1.0)), by_exponent]


# ---------------------------------------------------------------------------- ops


def _squared_difference(xp: Any, out: Any, x: Any, y: Any) -> None:
    xp.subtract(x, y, out=out)
    xp.square(out, out=out)


def _grad_squared_difference(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    slope = (g * 2.0) * (x - y)
    return [slope, lambda: -slope]


def _rsqrt(xp: Any, out: Any, x: Any) -> None:
    xp.sqrt(x, out=out)
    xp.reciprocal(out, out=out)


def _check_of_exponent(x: Any, y: Any) -> Check | None:
    def check() -> None:
        if y.min() < 0:
            raise InvalidArgumentError(
                "Integers to negative integer powers are not allowed. Cast them to floats first. "
                "[Op:Pow]"
            )

    return check if y.dtype in INTEGERS and y.size else None


SQUARE = unary("Square", "square", lambda call, g: g * (call.inputs[0] * 2.0), NUMBERS)
SQRT = unary("Sqrt", "sqrt", lambda call, g: SQRT_GRAD(g, call.output))
RSQRT = unary("Rsqrt", _rsqrt, _grad_rsqrt)
RECIPROCAL = unary(
    "Reciprocal", "reciprocal", lambda call, g: MUL_NO_NAN(-(call.output * call.output), g)
)
EXP = unary("Exp", "exp", lambda call, g: g * call.output)
EXPM1 = unary("Expm1", "expm1", lambda call, g: g * EXP(call.inputs[0]))
LOG = unary("Log", "log", lambda call, g: g / call.inputs[0])
LOG1P = unary("Log1p", "log1p", lambda call, g: g / (call.inputs[0] + 1.0))
POW = binary("Pow", "power", _grad_pow, SIGNED, validate=_check_of_exponent)
SQUARED_DIFFERENCE = binary(
    "SquaredDifference", _squared_difference, _grad_squared_difference, FLOATS_AND_INDICES
)


# ---------------------------------------------------------------------------- public functions


def square(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the square of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.square(3.0))
        9.0
    """
    return SQUARE(x)


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return (x - y)^2, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.math.squared_difference([1, 5], 3).numpy()
        array([4, 4], dtype=int32)
    """
    return SQUARED_DIFFERENCE(x, y)


def sqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the square root of each element; NaN for negative ones.

    Example:
        >>> import mirrored as mr
        >>> float(mr.sqrt(9.0))
        3.0
    """
    return SQRT(x)


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / sqrt(x), element by element; infinity for 0 and NaN for negative ones.

    Example:
        >>> import mirrored as mr
        >>> float(mr.math.rsqrt(4.0))
        0.5
    """
    return RSQRT(x)


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / x, element by element; infinity for 0.

    Example:
        >>> import mirrored as mr
        >>> float(mr.math.reciprocal(4.0))
        0.25
    """
    return RECIPROCAL(x)


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """Return e to the power of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.exp(0.0))
        1.0
    """
    return EXP(x)


def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """Return exp(x) - 1, element by element, with all digits where x is small.

    Example:
        >>> import mirrored as mr
        >>> float(mr.math.expm1(1e-10))
        1.000000013351432e-10
    """
    return EXPM1(x)


def log(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the natural logarithm of each element; -inf for 0 and NaN for negative ones.

    Example:
        >>> import mirrored as mr
        >>> float(mr.log(1.0))
        0.0
    """
    return LOG(x)


def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """Return log(1 + x), element by element, with all digits where x is small.

    Example:
        >>> import mirrored as mr
        >>> float(mr.math.log1p(1e-10))
        1.000000013351432e-10
    """
    return LOG1P(x)


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x to the power of y, element by element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.pow(2.0, 3.0))
        8.0
    """
    return POW(x, y)


@explained
def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """Return the value of a polynomial at each element, by Horner's rule.

    Args:
        coeffs: A list of the coefficients, that of the highest power first: numbers, or tensors of
            shapes that broadcast with that of `x`.
        x: Where.
        name: Accepted for compatibility.

    Raises:
        ValueError: `coeffs` is no list.
        InvalidArgumentError: The dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.math.polyval([1.0, 0.0, -2.0], [3.0, 4.0]).numpy()
        array([ 7., 14.], dtype=float32)
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    at = adopt(x, None)
    if not coeffs:
        return ZEROS_LIKE(at)
    result, *others = [adopt(coeff, None) for coeff in coeffs]
    for coefficient in others:
        result = coefficient + result * at
    return result
