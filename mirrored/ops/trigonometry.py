"""Trigonometric and hyperbolic functions, and their inverses.

Each is a ufunc; the gradients are TensorFlow's formulas, also where there is no slope.
"""

from mirrored._types import TensorLike
from mirrored.ops.elementwise import binary, unary
from mirrored.ops.op import Grads, Op, OpCall
from mirrored.ops.powers import RECIPROCAL, SQRT, SQUARE
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor


def _over_root(call: OpCall) -> Tensor:
    """Return 1 / sqrt(1 - x^2)."""
    return RECIPROCAL(SQRT(1.0 - SQUARE(call.inputs[0])))


def _grad_atan2(call: OpCall, g: Tensor) -> Grads:
    y, x = call.inputs
    by_square = g / (SQUARE(x) + SQUARE(y))
    return [lambda: x * by_square, lambda: -y * by_square]


SIN = unary("Sin", "sin", lambda call, g: g * COS(call.inputs[0]))
COS: Op = unary("Cos", "cos", lambda call, g: -g * SIN(call.inputs[0]))
TAN = unary("Tan", "tan", lambda call, g: g * SQUARE(RECIPROCAL(COS(call.inputs[0]))))
ASIN = unary("Asin", "arcsin", lambda call, g: g * _over_root(call))
ACOS = unary("Acos", "arccos", lambda call, g: -g * _over_root(call))
ATAN = unary("Atan", "arctan", lambda call, g: g * RECIPROCAL(SQUARE(call.inputs[0]) + 1.0))
ATAN2 = binary("Atan2", "arctan2", _grad_atan2, FLOATS)
SINH = unary("Sinh", "sinh", lambda call, g: g * COSH(call.inputs[0]))
COSH: Op = unary("Cosh", "cosh", lambda call, g: g * SINH(call.inputs[0]))
ASINH = unary("Asinh", "arcsinh", lambda call, g: g / COSH(call.output))
ACOSH = unary("Acosh", "arccosh", lambda call, g: g / SINH(call.output))
ATANH = unary("Atanh", "arctanh", lambda call, g: g * RECIPROCAL(1.0 - SQUARE(call.inputs[0])))


# ---------------------------------------------------------------------------- public functions


def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the sine of each element, an angle in radians.

    Example:
        >>> import mirrored as mr
        >>> float(mr.sin(0.0))
        0.0
    """
    return SIN(x)


def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the cosine of each element, an angle in radians.

    Example:
        >>> import mirrored as mr
        >>> float(mr.cos(0.0))
        1.0
    """
    return COS(x)


def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the tangent of each element, an angle in radians.

    Example:
        >>> import mirrored as mr
        >>> float(mr.tan(0.0))
        0.0
    """
    return TAN(x)


def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle in [-pi/2, pi/2] whose sine each element is; NaN outside [-1, 1].

    Example:
        >>> import mirrored as mr
        >>> float(mr.asin(0.0))
        0.0
    """
    return ASIN(x)


def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle in [0, pi] whose cosine each element is; NaN outside [-1, 1].

    Example:
        >>> import mirrored as mr
        >>> float(mr.acos(1.0))
        0.0
    """
    return ACOS(x)


def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle in [-pi/2, pi/2] whose tangent each element is.

    Example:
        >>> import mirrored as mr
        >>> float(mr.atan(0.0))
        0.0
    """
    return ATAN(x)


def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle in [-pi, pi] of each point (x, y), by the signs of both.

    Example:
        >>> import mirrored as mr
        >>> float(mr.atan2(0.0, 1.0))
        0.0
    """
    return ATAN2(y, x)


def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the hyperbolic sine of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.sinh(0.0))
        0.0
    """
    return SINH(x)


def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the hyperbolic cosine of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.cosh(0.0))
        1.0
    """
    return COSH(x)


def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number whose hyperbolic sine each element is.

    Example:
        >>> import mirrored as mr
        >>> float(mr.asinh(0.0))
        0.0
    """
    return ASINH(x)


def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number from 0 on whose hyperbolic cosine each element is; NaN below 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.acosh(1.0))
        0.0
    """
    return ACOSH(x)


def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number whose hyperbolic tangent each element is; NaN outside [-1, 1].

    Example:
        >>> import mirrored as mr
        >>> float(mr.atanh(0.0))
        0.0
    """
    return ATANH(x)
