"""`keras.ops` of one tensor that convert integers to floats.

Each is a call or two of an operation.
"""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.numpy_functions import ufuncs as unary
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS

_Unary = Callable[[Any], Tensor]


def _define(name: str, text: str, function: _Unary, example: str, convert: Any = _floats) -> _Unary:
    """Return a function of one tensor, with a docstring made of what it returns and an example."""

    def f(x: Any) -> Tensor:
        return function(convert(x))

    f.__name__ = f.__qualname__ = name
    arguments, result = example.split(" -> ")
    further = " Integers become floats of floatx." if convert is _floats else ""
    f.__doc__ = f"""Return {text}.{further}

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.{name}({arguments}).numpy().item()
        {result}
    """
    return explained(f)


def _whole_as_is(x: Any) -> Any:
    """Return floats, and what is whole already."""
    return ops.convert_to_tensor(x)


def _signbit(x: Tensor) -> Tensor:
    below = unary.signbit(x)
    if x.dtype not in FLOATS:
        return below
    return ops.where(ops.equal(x, 0.0), ops.less(ops.reciprocal(x), 0.0), below)


def _trunc(x: Tensor) -> Tensor:
    if x.dtype not in FLOATS:
        return x
    # -0.0 stays below 0, as in Keras.
    return ops.where(ops.less(x, ops.zeros_like(x)), ops.ceil(x), ops.floor(x))


exp = _define("exp", "e to the power of each element", ops.exp, "0.0 -> 1.0")
exp2 = _define("exp2", "2 to the power of each element", unary.exp2, "3 -> 8.0")
expm1 = _define("expm1", "e to the power of each element, less 1", ops.expm1, "0.0 -> 0.0")
log = _define("log", "the natural logarithms", ops.log, "1 -> 0.0")
log1p = _define("log1p", "the logarithms of x + 1", ops.log1p, "0 -> 0.0")
log2 = _define("log2", "the logarithms to base 2", unary.log2, "8 -> 3.0")
log10 = _define("log10", "the logarithms to base 10", unary.log10, "1 -> 0.0")
sqrt = _define("sqrt", "the square roots", ops.sqrt, "4 -> 2.0")
cbrt = _define("cbrt", "the cube roots", unary.cbrt, "-8 -> -2.0")
sin = _define("sin", "the sines", ops.sin, "0 -> 0.0")
cos = _define("cos", "the cosines", ops.cos, "0 -> 1.0")
tan = _define("tan", "the tangents", ops.tan, "0 -> 0.0")
sinh = _define("sinh", "the hyperbolic sines", ops.sinh, "0 -> 0.0")
cosh = _define("cosh", "the hyperbolic cosines", ops.cosh, "0 -> 1.0")
tanh = _define("tanh", "the hyperbolic tangents", ops.tanh, "0 -> 0.0")
arcsin = _define("arcsin", "the inverse sines", ops.asin, "0 -> 0.0")
arccos = _define("arccos", "the inverse cosines", ops.acos, "1 -> 0.0")
arctan = _define("arctan", "the inverse tangents", ops.atan, "0 -> 0.0")
arcsinh = _define("arcsinh", "the inverse hyperbolic sines", ops.asinh, "0 -> 0.0")
arccosh = _define("arccosh", "the inverse hyperbolic cosines", ops.acosh, "1 -> 0.0")
arctanh = _define("arctanh", "the inverse hyperbolic tangents", ops.atanh, "0 -> 0.0")
floor = _define("floor", "the elements, rounded down", ops.floor, "1.5 -> 1.0")
ceil = _define("ceil", "the elements, rounded up", ops.ceil, "1.5 -> 2.0")
trunc = _define("trunc", "the elements, rounded towards 0", _trunc, "-1.5 -> -1.0", _whole_as_is)
fabs = _define("fabs", "the elements without their signs", ops.abs, "-2 -> 2.0")
sinc = _define("sinc", "sin(pi x) / (pi x), and 1 at 0", unary.sinc, "0 -> 1.0")
deg2rad = _define("deg2rad", "degrees as radians", unary.deg2rad, "0 -> 0.0")
rad2deg = _define("rad2deg", "radians as degrees", unary.rad2deg, "0 -> 0.0")
angle = _define("angle", "0 for what is not below 0, and pi for what is", unary.angle, "1 -> 0.0")
erf = _define("erf", "the error function of each element", ops.erf, "0 -> 0.0")
erfc = _define("erfc", "1 less the error function of each element", ops.erfc, "0 -> 1.0")
erfinv = _define("erfinv", "what `erf` gives the elements of", ops.erfinv, "0 -> 0.0")
signbit = _define(
    "signbit", "whether each element is below 0, or -0.0", _signbit, "-1 -> True", _whole_as_is
)
isposinf = _define("isposinf", "which elements are plus infinity", unary.isposinf, "1.0 -> False")
isneginf = _define("isneginf", "which elements are minus infinity", unary.isneginf, "1.0 -> False")
conj = _define("conj", "the elements, which are real", ops.identity, "2.0 -> 2.0", _whole_as_is)
conjugate = _define(
    "conjugate", "the elements, which are real", ops.identity, "2.0 -> 2.0", _whole_as_is
)
real = _define("real", "the elements, which are real", ops.identity, "2.0 -> 2.0", _whole_as_is)
imag = _define("imag", "zeros: the elements are real", ops.zeros_like, "2.0 -> 0.0", _whole_as_is)
isreal = _define(
    "isreal",
    "whether elements are real, as all are",
    lambda x: ops.ones_like(x, ops.bool_),
    "2.0 -> True",
    _whole_as_is,
)
copy = _define("copy", "the elements", ops.identity, "2.0 -> 2.0", _whole_as_is)
