"""`keras.ops` that NumPy has, element by element.

A number of Python's counts less than a tensor: it changes no integer to int64, nor a float's width.
"""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.keras_functions.promotion import (
    PROMOTED,
    RULES,
    UNMULTIPLIED,
    promoted_floats,
    result_type,
    to_floats,
    to_numbers,
    to_tensors,
    widened,
)
from mirrored.numpy_functions import ufuncs
from mirrored.numpy_functions.rows import Rows
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS, float_limits

_ROWS = Rows(__name__, RULES)
unary, binary, again = _ROWS.unary, _ROWS.binary, _ROWS.again
_BYTES = {ops.uint8}
_SHORT = {kind for kind in UNMULTIPLIED if kind.itemsize < 4}


def _size(x: Tensor) -> Tensor:
    return x if x.dtype in (ops.uint8, ops.bool_) else ops.abs(x)


def _of_floats(function: Callable[[Tensor], Tensor], otherwise: bool) -> Callable[[Any], Tensor]:
    """Return a function that is True or False of all integers."""
    like = ops.ones_like if otherwise else ops.zeros_like
    return lambda x: function(x) if x.dtype in FLOATS else like(x, ops.bool_)


def _signbit(x: Tensor) -> Tensor:
    below = ufuncs.signbit(x)
    if x.dtype not in FLOATS:
        return below
    return ops.where(ops.equal(x, 0.0), ops.less(ops.reciprocal(x), 0.0), below)


def _trunc(x: Tensor) -> Tensor:
    if x.dtype not in FLOATS:
        return x
    # -0.0 stays below 0, as in Keras.
    return ops.where(ops.less(x, ops.zeros_like(x)), ops.ceil(x), ops.floor(x))


exp, exp2, expm1, log = again(ufuncs.exp, ufuncs.exp2, ufuncs.expm1, ufuncs.log)
log1p, log2, log10, sqrt = again(ufuncs.log1p, ufuncs.log2, ufuncs.log10, ufuncs.sqrt)
cbrt, sin, cos, tan, sinh = again(ufuncs.cbrt, ufuncs.sin, ufuncs.cos, ufuncs.tan, ufuncs.sinh)
cosh, tanh, arcsin, arccos = again(ufuncs.cosh, ufuncs.tanh, ufuncs.arcsin, ufuncs.arccos)
arctan, arcsinh, arccosh = again(ufuncs.arctan, ufuncs.arcsinh, ufuncs.arccosh)
arctanh, floor, ceil, sinc = again(ufuncs.arctanh, ufuncs.floor, ufuncs.ceil, ufuncs.sinc)
deg2rad, rad2deg, isposinf = again(ufuncs.deg2rad, ufuncs.rad2deg, ufuncs.isposinf)
isneginf, negative = again(ufuncs.isneginf, ufuncs.negative)
reciprocal, logical_not = again(ufuncs.reciprocal, ufuncs.logical_not)
subtract, logical_and = again(ufuncs.subtract, ufuncs.logical_and)
logical_or, logical_xor = again(ufuncs.logical_or, ufuncs.logical_xor)
fabs = unary(ops.abs, "the elements without their signs", "-2 -> 2.0")
angle = unary(ufuncs.angle, "0 for what is not below 0, and pi for what is", "1 -> 0.0")
trunc = unary(_trunc, "the elements, rounded towards 0", "-1.5 -> -1.0", "same")
signbit = unary(_signbit, "which elements are below 0, or -0.0", "-1 -> True", "same")
conj = unary(ops.identity, "the elements, which are real", "2.0 -> 2.0", "same")
conjugate = unary(ops.identity, "the elements, which are real", "2.0 -> 2.0", "same")
real = unary(ops.identity, "the elements, which are real", "2.0 -> 2.0", "same")
imag = unary(ops.zeros_like, "zeros: the elements are real", "2.0 -> 0.0", "same")
isreal = unary(
    lambda x: ops.ones_like(x, ops.bool_), "True: all elements are real", "2.0 -> True", "same"
)
copy = unary(ops.identity, "the elements", "2.0 -> 2.0", "same")
abs = unary(_size, "the elements without their signs", "-4 -> 4", "same")
absolute = unary(_size, "the elements without their signs", "-4 -> 4", "same")
square = unary(ops.square, "the squares; those of booleans are int32", "3 -> 9", "number")
sign = unary(widened(ops.sign, _BYTES), "-1, 0 or 1", "-3.0 -> -1.0", "same")
isnan = unary(_of_floats(ops.is_nan, False), "which elements are NaN", "1.0 -> False", "same")
isinf = unary(_of_floats(ops.is_inf, False), "which elements are infinite", "1.0 -> False", "same")
isfinite = unary(
    _of_floats(ops.is_finite, True), "which elements are finite", "1.0 -> True", "same"
)


def _known(choose: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Return a function of two tensors that returns the other one where one is NaN."""

    def f(first: Tensor, second: Tensor) -> Tensor:
        if first.dtype not in FLOATS:
            return choose(first, second)
        chosen = ops.where(ops.is_nan(second), first, choose(first, second))
        return ops.where(ops.is_nan(first), second, chosen)

    return f


def _wide(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Return a function of floats; integers of 64 bits become float64, as in TensorFlow's Keras."""

    def f(first: Tensor, second: Tensor) -> Tensor:
        wide = first.dtype in INTEGERS and first.dtype.itemsize == 8
        kind = ops.float64 if wide else result_type(first.dtype, float)
        return function(ops.cast(first, kind), ops.cast(second, kind))

    return f


def _fmod(first: Tensor, second: Tensor) -> Tensor:
    """Return what is left over, of the sign of the first one."""
    if first.dtype.kind in "bu":
        return ops.floormod(first, second)
    left = ops.floormod(ops.abs(first), ops.abs(second))
    return ops.where(ops.less(first, ops.zeros_like(first)), ops.negative(left), left)


add = binary(ops.add, "the sums", "1, 2.5 -> 3.5")
multiply = binary(ops.multiply, "the products", "2, 2.5 -> 5.0")
divide = binary(ops.divide, "the quotients", "1, 2 -> 0.5", "float_pair")
true_divide = binary(ops.divide, "the quotients", "1, 2 -> 0.5", "float_pair")
floor_divide = binary(ops.floordiv, "the quotients, rounded down", "7, 2 -> 3")
mod = binary(
    ops.floormod, f"what is left over, of the sign of x2{PROMOTED}", "-7, 3 -> 2", "tensors"
)
power = binary(widened(ops.pow, _BYTES), "x1 to the power of x2", "2.0, 3 -> 8.0")
maximum = binary(ops.maximum, "the larger ones", "1, 2.5 -> 2.5")
minimum = binary(ops.minimum, "the smaller ones", "1, 2.5 -> 1.0")
equal = binary(ops.equal, "which elements are equal", "1, 2.5 -> False", "tensors")
not_equal = binary(ops.not_equal, "which elements differ", "1, 2.5 -> True", "tensors")
greater = binary(ops.greater, "whether x1 > x2", "1, 2.5 -> False", "tensors")
greater_equal = binary(ops.greater_equal, "whether x1 >= x2", "1, 2.5 -> False", "tensors")
less = binary(ops.less, "whether x1 < x2", "1, 2.5 -> True", "tensors")
less_equal = binary(ops.less_equal, "whether x1 <= x2", "1, 2.5 -> True", "tensors")
arctan2 = binary(ops.atan2, "the angle of the point (x2, x1)", "0, 1 -> 0.0", "float_pair")
hypot = binary(_wide(ufuncs.hypot), "the root of x1^2 + x2^2 as floats", "3, 4 -> 5.0")
heaviside = binary(_wide(ufuncs.heaviside), "0 below 0, 1 above, x2 at 0, as floats", "0, 2 -> 2.0")
logaddexp = binary(
    ufuncs.logaddexp, "log(exp(x1) + exp(x2)) without overflow", "0.0, 0.0 -> 0.69...", "float_pair"
)
logaddexp2 = binary(
    ufuncs.logaddexp2, "log2(2**x1 + 2**x2) without overflow", "0.0, 0.0 -> 1.0", "float_pair"
)
nextafter = binary(
    ops.nextafter, "the next number after x1 towards x2", "1, 1 -> 1.0", "float_pair"
)
divide_no_nan = binary(
    ops.divide_no_nan, "the quotients, and 0 where x2 is 0", "1.0, 0.0 -> 0.0", "float_pair"
)
fmax = binary(_known(ops.maximum), "the larger one, or that which is not NaN", "1, 2 -> 2")
fmin = binary(_known(ops.minimum), "the smaller one, or that which is not NaN", "1, 2 -> 1")
fmod = binary(widened(_fmod, _SHORT), "what division leaves, of the sign of x1", "-7, 3 -> -1")


def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Return the elements, rounded to even ones where two are as near.

    Args:
        x: A tensor.
        decimals: How many digits behind the point stay.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.round(2.5).numpy().item()
        2.0
    """
    if decimals == 0:
        return ops.round(x)
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS and decimals > 0:
        return tensor
    numbers = to_floats(tensor)
    factor = ops.cast(10.0**decimals, numbers.dtype)
    return ops.cast(ops.divide(ops.round(ops.multiply(numbers, factor)), factor), tensor.dtype)


def clip(x: TensorLike, x_min: TensorLike, x_max: TensorLike) -> Tensor:
    """Return the elements, none below one bound or above the other.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        x_min: The lower bound.
        x_max: The upper bound.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.clip([-1.0, 0.5], 0.0, 1.0).numpy()
        array([0. , 0.5], dtype=float32)
    """
    return ops.clip_by_value(to_numbers(x), x_min, x_max)


def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return x1 times 2 to the power of x2.

    Args:
        x1: Numbers.
        x2: Integers.

    Raises:
        TypeError: The exponents are no integers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ldexp(3.0, 2).numpy().item()
        12.0
    """
    first, exponent = to_tensors(x1, x2)
    if exponent.dtype not in INTEGERS:
        raise TypeError(
            f"ldexp exponent must be an integer type. Received: x2 dtype={exponent.dtype.name}"
        )
    kind = result_type(first.dtype, exponent.dtype, float)
    power = ops.pow(ops.constant(2.0, kind), ops.cast(exponent, kind))
    return ops.multiply(ops.cast(first, kind), power)


def isclose(
    x1: TensorLike, x2: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether |x1 - x2| <= atol + rtol |x2|, element by element.

    Args:
        x1: Numbers.
        x2: Others.
        rtol: The part of `x2` by which `x1` may be off.
        atol: By how much it may be off besides.
        equal_nan: Whether NaN is close to NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.isclose([1.0, 2.0], [1.0, 2.1]).numpy()
        array([ True, False])
    """
    first, second = promoted_floats(x1, x2)
    near = ufuncs.isclose(first, second, rtol, atol, equal_nan)
    return ops.logical_or(near, ops.equal(first, second))  # The same infinity is close to itself.


def allclose(
    x1: TensorLike, x2: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements are close, as `isclose` has it.

    Args: as for `isclose`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.allclose([1.0, 2.0], [1.0, 2.1]).numpy().item()
        False
    """
    return ops.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def nan_to_num(
    x: TensorLike,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> Tensor:
    """Return the elements, with numbers instead of NaN and infinities.

    Args:
        x: Numbers.
        nan: What NaN becomes.
        posinf: What plus infinity becomes; None: the largest number of the dtype.
        neginf: What minus infinity becomes; None: the least number of the dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nan_to_num([float("nan"), 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS:
        return tensor
    largest = float_limits(tensor.dtype)[1]
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    infinite = ops.constant(float("inf"), tensor.dtype)
    for chosen, number in (
        (ops.is_nan(tensor), nan),
        (ops.equal(tensor, infinite), high),
        (ops.equal(tensor, ops.negative(infinite)), low),
    ):
        tensor = ops.where(chosen, ops.constant(number, tensor.dtype), tensor)
    return tensor


_ROWS.name_all()
explain_functions(
    __name__,
    all_but="""
        abs absolute add clip divide equal floor_divide greater greater_equal isfinite isinf
        isnan less less_equal logical_and logical_not logical_or logical_xor maximum minimum mod
        multiply negative not_equal power reciprocal sign square subtract true_divide
    """,
)
