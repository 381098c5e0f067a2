"""NumPy's elementwise functions, which broadcast and promote dtypes.

Booleans are added by `or` and multiplied by `and`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.numpy_functions.array_conversion import FLOAT, RULES, array, floats, promoted
from mirrored.numpy_functions.rows import Rows
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import FLOATS, bool_, float32, int8, int32

_ROWS = Rows(__name__, RULES)
unary, binary = _ROWS.unary, _ROWS.binary
Function = Callable[[Any, Any], Tensor]
_TO_DEGREES = 180.0 / math.pi


def _sinc(x: Tensor) -> Tensor:
    angles = x * math.pi
    return ops.where(x == 0.0, ops.ones_like(x), ops.sin(angles) / angles)


def _cbrt(x: Tensor) -> Tensor:
    root = ops.pow(ops.abs(x), 1.0 / 3)
    return ops.where(x < 0.0, -root, root)


def _fix(x: Tensor) -> Tensor:
    return ops.where(x < 0.0, ops.ceil(x), ops.floor(x))


def _below_zero(x: Tensor) -> Tensor:
    return ops.zeros_like(x) if x.dtype == bool_ else x < ops.zeros_like(x)


def _two(x: Tensor) -> Tensor:
    return ops.constant(2, x.dtype)


exp = unary(ops.exp, "e to the power of each element", "0 -> 1.0")
exp2 = unary(lambda x: ops.pow(_two(x), x), "2 to the power of each element", "3 -> 8.0")
expm1 = unary(ops.expm1, "e to the power of each element, less 1", "0 -> 0.0")
log = unary(ops.log, "the natural logarithms", "1 -> 0.0")
log1p = unary(ops.log1p, "the natural logarithms of x + 1", "0 -> 0.0")
log2 = unary(lambda x: ops.log(x) / np.log(2), "the logarithms to base 2", "8 -> 3.0")
log10 = unary(lambda x: ops.log(x) / np.log(10), "the logarithms to base 10", "1 -> 0.0")
sqrt = unary(ops.sqrt, "the square roots", "4 -> 2.0")
cbrt = unary(_cbrt, "the cube roots", "-8 -> -2.0")
sin = unary(ops.sin, "the sines", "0 -> 0.0")
cos = unary(ops.cos, "the cosines", "0 -> 1.0")
tan = unary(ops.tan, "the tangents", "0 -> 0.0")
sinh = unary(ops.sinh, "the hyperbolic sines", "0 -> 0.0")
cosh = unary(ops.cosh, "the hyperbolic cosines", "0 -> 1.0")
tanh = unary(ops.tanh, "the hyperbolic tangents", "0 -> 0.0")
arcsin = unary(ops.asin, "the inverse sines", "0 -> 0.0")
arccos = unary(ops.acos, "the inverse cosines", "1 -> 0.0")
arctan = unary(ops.atan, "the inverse tangents", "0 -> 0.0")
arcsinh = unary(ops.asinh, "the inverse hyperbolic sines", "0 -> 0.0")
arccosh = unary(ops.acosh, "the inverse hyperbolic cosines", "1 -> 0.0")
arctanh = unary(ops.atanh, "the inverse hyperbolic tangents", "0 -> 0.0")
ceil = unary(ops.ceil, "the elements, rounded up", "1.5 -> 2.0")
floor = unary(ops.floor, "the elements, rounded down", "1.5 -> 1.0")
fix = unary(_fix, "the elements, rounded towards 0", "-1.5 -> -1.0")
sinc = unary(_sinc, "sin(pi x) / (pi x), and 1 at 0", "0 -> 1.0")
deg2rad = unary(lambda x: x * (np.pi / 180.0), "degrees as radians", "0 -> 0.0")
rad2deg = unary(lambda x: x * _TO_DEGREES, "radians as degrees", "0 -> 0.0")
isnan = unary(ops.is_nan, "which elements are NaN", "1.0 -> False")
isfinite = unary(ops.is_finite, "which elements are finite", "1.0 -> True")
isinf = unary(ops.is_inf, "which elements are infinite", "1.0 -> False")
isneginf = unary(lambda x: x == -np.inf, "which elements are minus infinity", "1.0 -> False")
isposinf = unary(lambda x: x == np.inf, "which elements are plus infinity", "1.0 -> False")
abs = unary(ops.abs, "the elements without their signs", "-4 -> 4", "same")
absolute = unary(ops.abs, "the elements without their signs", "-4 -> 4", "same")
fabs = unary(ops.abs, "the elements without their signs", "-4.0 -> 4.0", "same")
negative = unary(ops.negative, "the elements with the other sign", "4 -> -4", "same")
positive = unary(lambda x: x, "the elements", "4 -> 4", "same")
square = unary(ops.square, "the squares", "4 -> 16", "same")
reciprocal = unary(ops.reciprocal, "1 over the elements", "4.0 -> 0.25", "same")
signbit = unary(_below_zero, "which elements are below 0", "-4 -> True", "same")
conj = unary(lambda x: x, "the elements, which are real", "2.0 -> 2.0", "same")
conjugate = unary(lambda x: x, "the elements, which are real", "2.0 -> 2.0", "same")
logical_not = unary(ops.logical_not, "which elements are 0", "2 -> False", "truth")


def _or_of_bools(logical: Function, function: Function) -> Function:
    """Return a function that is a logical one where both are of booleans."""
    return lambda a, b: logical(a, b) if a.dtype == bool_ else function(a, b)


def _bools_as(kind: Any, function: Function) -> Function:
    """Return a function to which booleans are numbers of a dtype."""

    def f(a: Tensor, b: Tensor) -> Tensor:
        if a.dtype == bool_:
            a, b = ops.cast(a, kind), ops.cast(b, kind)
        return function(a, b)

    return f


def _heaviside(a: Tensor, b: Tensor) -> Tensor:
    steps = ops.where(a > ops.zeros_like(a), ops.ones_like(b), b)
    result = ops.where(a < ops.zeros_like(a), ops.zeros_like(b), steps)
    return result if result.dtype in FLOATS else ops.cast(result, FLOAT)


def _log_of_sum(tail: Callable[[Tensor], Tensor]) -> Function:
    def f(a: Tensor, b: Tensor) -> Tensor:
        distance = a - b  # NaN where both are the same infinity.
        return ops.where(isnan(distance), a + b, ops.maximum(a, b) + tail(-ops.abs(distance)))

    return f


_DIVIDE, _MODULO = _bools_as(FLOAT, ops.divide), _bools_as(int8, ops.floormod)

add = binary(_or_of_bools(ops.logical_or, ops.add), "the sums", "2, 3.5 -> 5.5")
subtract = binary(ops.subtract, "the differences", "2, 3.5 -> -1.5")
multiply = binary(_or_of_bools(ops.logical_and, ops.multiply), "the products", "2, 3 -> 6")
true_divide = binary(_DIVIDE, "the quotients", "7, 2 -> 3.5")
divide = binary(_DIVIDE, "the quotients", "7, 2 -> 3.5")
floor_divide = binary(_bools_as(int8, ops.floordiv), "the quotients, rounded down", "7, 2 -> 3")
mod = binary(_MODULO, "what `floor_divide` leaves", "7, 2 -> 1")
remainder = binary(_MODULO, "what `floor_divide` leaves", "7, 2 -> 1")
minimum = binary(_or_of_bools(ops.logical_and, ops.minimum), "the smaller one", "2, 3 -> 2")
power = binary(ops.pow, "x1 to the power of x2", "2, 3 -> 8")
float_power = binary(ops.pow, "x1 to the power of x2", "2.0, 3 -> 8.0")
arctan2 = binary(ops.atan2, "the angle of the point (x2, x1)", "0.0, 1.0 -> 0.0")
nextafter = binary(
    ops.nextafter, "the next number after x1 in the direction of x2", "0.5, 0.5 -> 0.5"
)
heaviside = binary(_heaviside, "0 below 0, 1 above, and x2 at 0", "-1.0, 2.0 -> 0.0")
logaddexp = binary(
    _log_of_sum(lambda x: log1p(exp(x))),
    "log(exp(x1) + exp(x2)) without overflow",
    "0.0, 0.0 -> 0.69...",
    "float_pair",
)
logaddexp2 = binary(
    _log_of_sum(lambda x: log1p(exp2(x)) / np.log(2)),
    "log2(2**x1 + 2**x2) without overflow",
    "0.0, 0.0 -> 1.0",
    "float_pair",
)
equal = binary(ops.equal, "whether x1 equals x2", "2, 2.0 -> True")
not_equal = binary(ops.not_equal, "whether x1 differs from x2", "2, 2.0 -> False")
greater = binary(_bools_as(int32, ops.greater), "whether x1 > x2", "2, 1 -> True")
greater_equal = binary(_bools_as(int32, ops.greater_equal), "whether x1 >= x2", "2, 2 -> True")
less = binary(_bools_as(int32, ops.less), "whether x1 < x2", "2, 1 -> False")
less_equal = binary(_bools_as(int32, ops.less_equal), "whether x1 <= x2", "2, 2 -> True")
logical_and = binary(ops.logical_and, "whether both are not 0", "1, 0 -> False", "truths")
logical_or = binary(ops.logical_or, "whether one of both is not 0", "1, 0 -> True", "truths")
logical_xor = binary(ops.logical_xor, "whether just one is not 0", "1, 2 -> False", "truths")


def real(val: TensorLike) -> Tensor:
    """Return the value itself: it has no imaginary part.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.real(2.0))
        2.0
    """
    return array(val)


def angle(z: TensorLike, deg: bool = False) -> Tensor:
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


def sign(x: TensorLike, out: None = None, where: TensorLike | None = None, **kwargs: Any) -> Tensor:
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


def around(a: TensorLike, decimals: int = 0) -> Tensor:
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


def round(a: TensorLike, decimals: int = 0) -> Tensor:
    """Return each element rounded, as `around` does.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.round(2.5))
        2.0
    """
    return around(a, decimals)


def iscomplexobj(x: TensorLike) -> bool:
    """Return False: no tensor is of complex numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.iscomplexobj([1.0])
        False
    """
    array(x)
    return False


def isrealobj(x: TensorLike) -> bool:
    """Return True: no tensor is of complex numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.isrealobj([1.0])
        True
    """
    return not iscomplexobj(x)


def maximum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the larger one, element by element.

    Args:
        x1: A tensor, an array, a number or nested lists of these.
        x2: Another one, of a shape that broadcasts. Where it is the number 0 the gradient at 0 is
            that of `relu`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.maximum([1, 5], 3).numpy()
        array([3, 5])
    """
    is_zero = isinstance(x2, int | float | np.number) and x2 is not False and x2 == 0
    first: Any = x1
    if is_zero and is_tensor(first) and first.dtype != bool_:
        return ops.relu(array(x1))
    return _or_of_bools(ops.logical_or, ops.maximum)(*promoted(x1, x2))


def divmod(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Tensor]:
    """Return what `floor_divide` and `mod` return.

    Example:
        >>> import mirrored as mr
        >>> [int(each) for each in mr.experimental.numpy.divmod(7, 2)]
        [3, 1]
    """
    return floor_divide(x1, x2), mod(x1, x2)


def clip(a: TensorLike, a_min: TensorLike | None, a_max: TensorLike | None) -> Tensor:
    """Return each element, or the limit that it is beyond.

    Args:
        a: Numbers.
        a_min: The least; None: there is none.
        a_max: The largest; None: there is none.

    Raises:
        ValueError: Both are None.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.clip([1, 5, 9], 2, 6).numpy()
        array([2, 5, 6])
    """
    if a_min is None and a_max is None:
        raise ValueError("Not more than one of `a_min` and `a_max` may be `None`.")
    if a_min is None:
        return minimum(a, a_max)
    if a_max is None:
        return maximum(a, a_min)
    x, low, high = promoted(a, a_min, a_max)
    return ops.maximum(ops.minimum(x, high), low)


def hypot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the root of the sum of the squares, element by element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.hypot(3, 4))
        5.0
    """
    return sqrt(add(square(x1), square(x2)))


def isclose(
    a: TensorLike, b: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether |a - b| <= atol + rtol |b|, element by element; integers have to be equal.

    Args:
        a: Numbers.
        b: Others.
        rtol: The part of b by which a may be off.
        atol: By how much it may be off besides.
        equal_nan: Whether NaN is close to NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.isclose([1.0, 2.0], [1.000001, 2.1]).numpy()
        array([ True, False])
    """
    x, y = promoted(a, b)
    if x.dtype not in FLOATS:
        return ops.equal(x, y)
    close = ops.abs(x - y) <= atol + rtol * ops.abs(y)
    both = ops.logical_and(ops.is_nan(x), ops.is_nan(y))
    return ops.logical_or(close, both) if equal_nan else close


def allclose(
    a: TensorLike, b: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements are close, as `isclose` has it.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.allclose([1.0], [1.000001]))
        True
    """
    return ops.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return whether two values are of one shape and have equal elements.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.array_equal([1, 2], [1.0, 2.0]))
        True
    """
    x, y = promoted(a1, a2)
    return ops.reduce_all(ops.equal(x, y)) if x.shape == y.shape else ops.constant(False)


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """Return the value of a polynomial at each element.

    Args:
        p: Its coefficients, the highest power's first.
        x: Where.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.polyval([1, 2], [3, 4]).numpy()
        array([5, 6])
    """
    coefficients, at = promoted(p, x)
    terms = ops.unstack(ops.reshape(coefficients, [-1]) if not coefficients.ndim else coefficients)
    value = ops.polyval(terms, at)
    return ops.broadcast_to(value, at.shape) if len(terms) == 1 else value


_ROWS.name_all()
explain_functions(__name__)
