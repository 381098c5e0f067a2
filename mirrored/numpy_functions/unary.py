"""NumPy's elementwise functions of one tensor.

Those of floats take integers and booleans as float64.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.numpy_functions.promotion import FLOAT, array, floats
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, bool_, float32

Unary = Callable[[Any], Tensor]
_TO_DEGREES = 180.0 / math.pi


def _define(name: str, noun: str, function: Unary, convert: Unary, example: str) -> Unary:
    """Return a function of one tensor, with a docstring made of what it returns and an example."""

    def f(x: Any) -> Tensor:
        return function(convert(x))

    f.__name__ = f.__qualname__ = name
    arguments, result = example.split(" -> ")
    f.__doc__ = f"""Return {noun} of each element.

    Args:
        x: A tensor, an array, a number or nested lists of these.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.{name}({arguments}).numpy().item()
        {result}
    """
    return f


def _of_floats(name: str, noun: str, function: Unary, example: str) -> Unary:
    return _define(name, noun, function, floats, example)


def _sinc(x: Tensor) -> Tensor:
    angles = x * math.pi
    return ops.where(x == 0.0, ops.ones_like(x), ops.sin(angles) / angles)


def _cbrt(x: Tensor) -> Tensor:
    root = ops.pow(ops.abs(x), 1.0 / 3)
    return ops.where(x < 0.0, -root, root)


def _log_to(base: int) -> Unary:
    return lambda x: ops.log(x) / np.log(base)


def _exp2(x: Tensor) -> Tensor:
    return ops.pow(ops.constant(2, x.dtype), x)


exp = _of_floats("exp", "e to the power", ops.exp, "0 -> 1.0")
exp2 = _of_floats("exp2", "2 to the power", _exp2, "3 -> 8.0")
expm1 = _of_floats("expm1", "e to the power, less 1,", ops.expm1, "0 -> 0.0")
log = _of_floats("log", "the natural logarithm", ops.log, "1 -> 0.0")
log1p = _of_floats("log1p", "the natural logarithm of 1 more", ops.log1p, "0 -> 0.0")
log2 = _of_floats("log2", "the logarithm to base 2", _log_to(2), "8 -> 3.0")
log10 = _of_floats("log10", "the logarithm to base 10", _log_to(10), "1 -> 0.0")
sqrt = _of_floats("sqrt", "the square root", ops.sqrt, "4 -> 2.0")
cbrt = _of_floats("cbrt", "the cube root", _cbrt, "-8.0 -> -2.0")
sin = _of_floats("sin", "the sine", ops.sin, "0 -> 0.0")
cos = _of_floats("cos", "the cosine", ops.cos, "0 -> 1.0")
tan = _of_floats("tan", "the tangent", ops.tan, "0 -> 0.0")
sinh = _of_floats("sinh", "the hyperbolic sine", ops.sinh, "0 -> 0.0")
cosh = _of_floats("cosh", "the hyperbolic cosine", ops.cosh, "0 -> 1.0")
tanh = _of_floats("tanh", "the hyperbolic tangent", ops.tanh, "0 -> 0.0")
arcsin = _of_floats("arcsin", "the angle of a sine", ops.asin, "0 -> 0.0")
arccos = _of_floats("arccos", "the angle of a cosine", ops.acos, "1 -> 0.0")
arctan = _of_floats("arctan", "the angle of a tangent", ops.atan, "0 -> 0.0")
arcsinh = _of_floats("arcsinh", "the inverse hyperbolic sine", ops.asinh, "0 -> 0.0")
arccosh = _of_floats("arccosh", "the inverse hyperbolic cosine", ops.acosh, "1 -> 0.0")
arctanh = _of_floats("arctanh", "the inverse hyperbolic tangent", ops.atanh, "0 -> 0.0")
ceil = _of_floats("ceil", "the least whole number that is not below", ops.ceil, "1.5 -> 2.0")
floor = _of_floats("floor", "the largest whole number that is not above", ops.floor, "1.5 -> 1.0")
fix = _of_floats(
    "fix",
    "the whole number next to it towards 0",
    lambda x: ops.where(x < 0.0, ops.ceil(x), ops.floor(x)),
    "-1.5 -> -1.0",
)
sinc = _of_floats("sinc", "sin(pi x) / (pi x), and 1 at 0,", _sinc, "0 -> 1.0")
deg2rad = _of_floats("deg2rad", "the angle in radians", lambda x: x * (np.pi / 180.0), "0 -> 0.0")
rad2deg = _of_floats("rad2deg", "the angle in degrees", lambda x: x * _TO_DEGREES, "0 -> 0.0")
isnan = _of_floats("isnan", "whether it is NaN,", ops.is_nan, "1.0 -> False")
isfinite = _of_floats("isfinite", "whether it is finite,", ops.is_finite, "1.0 -> True")
isinf = _of_floats("isinf", "whether it is infinite,", ops.is_inf, "1.0 -> False")
isneginf = _of_floats(
    "isneginf", "whether it is minus infinity,", lambda x: x == -np.inf, "1.0 -> False"
)
isposinf = _of_floats(
    "isposinf", "whether it is plus infinity,", lambda x: x == np.inf, "1.0 -> False"
)
abs = _define("abs", "the size", ops.abs, array, "-4 -> 4")
absolute = _define("absolute", "the size", ops.abs, array, "-4 -> 4")
fabs = _define("fabs", "the size", ops.abs, array, "-4.0 -> 4.0")
negative = _define("negative", "the negative", ops.negative, array, "4 -> -4")
positive = _define("positive", "the value", lambda x: x, array, "4 -> 4")
square = _define("square", "the square", ops.square, array, "4 -> 16")
reciprocal = _define("reciprocal", "1 over the value", ops.reciprocal, array, "4.0 -> 0.25")
signbit = _define(
    "signbit",
    "whether it is below 0,",
    lambda x: ops.zeros_like(x) if x.dtype == bool_ else x < ops.zeros_like(x),
    array,
    "-4 -> True",
)


def conj(x: Any) -> Tensor:
    """Return the value itself: it has no imaginary part.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.conj(2.0))
        2.0
    """
    return array(x)


def conjugate(x: Any) -> Tensor:
    """Return the value itself: it has no imaginary part.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.conjugate(2.0))
        2.0
    """
    return array(x)


def real(val: Any) -> Tensor:
    """Return the value itself: it has no imaginary part.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.real(2.0))
        2.0
    """
    return array(val)


@explained
def angle(z: Any, deg: bool = False) -> Tensor:
    """Return 0 for what is not below 0, and pi for what is, in float32 as TensorFlow has it.

    Args:
        z: Numbers.
        deg: Whether to return degrees.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.angle([1.0, -1.0], deg=True).numpy()
        array([  0., 180.], dtype=float32)
    """
    x = floats(z)
    angles = ops.where(x < 0.0, ops.constant(np.pi, float32), ops.constant(0, float32))
    return angles * _TO_DEGREES if deg else angles


def logical_not(x: Any) -> Tensor:
    """Return whether each element is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logical_not([2, 0]).numpy()
        array([False,  True])
    """
    return ops.logical_not(array(x, np.bool_))


@explained
def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Tensor:
    """Return -1, 0 or 1 for each element.

    Args:
        x: Numbers.
        out: Refused, as by TensorFlow.
        where: Refused, as by TensorFlow.
        **kwargs: Refused, as by TensorFlow.

    Raises:
        ValueError: One of these is given.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.sign([-2, 3]).numpy()
        array([-1,  1])
    """
    options = [name for name, value in (("out", out), ("where", where)) if value] + [*kwargs]
    if options:
        raise ValueError(f"`sign` does not support setting {', '.join(options)}. Leave it out.")
    return ops.sign(array(x))


@explained
def around(a: Any, decimals: int = 0) -> Tensor:
    """Return each element rounded to `decimals` decimals; of two nearest the even one.

    Args:
        a: Numbers.
        decimals: How many; below 0 to tens, hundreds and so on.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.around([1.25, -2.75], 1).numpy()
        array([ 1.2, -2.8])
    """
    tensor = array(a)
    x = tensor if tensor.dtype in FLOATS else ops.cast(tensor, FLOAT)
    factor = ops.constant(math.pow(10, decimals), x.dtype)
    return ops.cast(ops.round(x * factor) / factor, tensor.dtype)


@explained
def round(a: Any, decimals: int = 0) -> Tensor:
    """Return each element rounded, as `around` does.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.round(2.5))
        2.0
    """
    return around(a, decimals)


def iscomplexobj(x: Any) -> bool:
    """Return False: no tensor is of complex numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.iscomplexobj([1.0])
        False
    """
    array(x)
    return False


def isrealobj(x: Any) -> bool:
    """Return True: no tensor is of complex numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.isrealobj([1.0])
        True
    """
    return not iscomplexobj(x)
