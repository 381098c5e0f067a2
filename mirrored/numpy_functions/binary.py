"""NumPy's elementwise functions of two tensors, which broadcast and promote dtypes.

Booleans are added by `or` and multiplied by `and`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.numpy_functions.promotion import FLOAT, array, booleans, floats, promoted
from mirrored.numpy_functions.unary import exp, exp2, isnan, log1p, sqrt, square
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import FLOATS, bool_, int8, int32

Function = Callable[[Any, Any], Tensor]


def _define(name: str, noun: str, function: Function, example: str) -> Function:
    """Return a function of two tensors, with a docstring of what it returns and an example."""

    def f(x1: Any, x2: Any) -> Tensor:
        return function(*promoted(x1, x2))

    f.__name__ = f.__qualname__ = name
    arguments, result = example.split(" -> ")
    f.__doc__ = f"""Return {noun}, element by element.

    Args:
        x1: A tensor, an array, a number or nested lists of these.
        x2: Another one, of a shape that broadcasts.

    Raises:
        InvalidArgumentError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.{name}({arguments}).numpy().item()
        {result}
    """
    return f


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


_ADD = _or_of_bools(ops.logical_or, ops.add)
add = _define("add", "the sum", _ADD, "2, 3.5 -> 5.5")
subtract = _define("subtract", "the difference", ops.subtract, "2, 3.5 -> -1.5")
multiply = _define(
    "multiply", "the product", _or_of_bools(ops.logical_and, ops.multiply), "2, 3 -> 6"
)
true_divide = _define("true_divide", "x1 / x2", _bools_as(FLOAT, ops.divide), "7, 2 -> 3.5")
divide = _define("divide", "x1 / x2", _bools_as(FLOAT, ops.divide), "7, 2 -> 3.5")
floor_divide = _define(
    "floor_divide", "x1 / x2 rounded down", _bools_as(int8, ops.floordiv), "7, 2 -> 3"
)
mod = _define("mod", "what `floor_divide` leaves", _bools_as(int8, ops.floormod), "7, 2 -> 1")
remainder = _define(
    "remainder", "what `floor_divide` leaves", _bools_as(int8, ops.floormod), "7, 2 -> 1"
)
minimum = _define(
    "minimum", "the smaller one", _or_of_bools(ops.logical_and, ops.minimum), "2, 3 -> 2"
)
power = _define("power", "x1 to the power of x2", ops.pow, "2, 3 -> 8")
float_power = _define("float_power", "x1 to the power of x2", ops.pow, "2.0, 3 -> 8.0")
arctan2 = _define("arctan2", "the angle of the point (x2, x1)", ops.atan2, "0.0, 1.0 -> 0.0")
nextafter = _define(
    "nextafter", "the next number after x1 in the direction of x2", ops.nextafter, "0.5, 0.5 -> 0.5"
)
heaviside = _define("heaviside", "0 below 0, 1 above, and x2 at 0", _heaviside, "-1.0, 2.0 -> 0.0")
equal = _define("equal", "whether x1 equals x2", ops.equal, "2, 2.0 -> True")
not_equal = _define("not_equal", "whether x1 differs from x2", ops.not_equal, "2, 2.0 -> False")
greater = _define("greater", "whether x1 > x2", _bools_as(int32, ops.greater), "2, 1 -> True")
greater_equal = _define(
    "greater_equal", "whether x1 >= x2", _bools_as(int32, ops.greater_equal), "2, 2 -> True"
)
less = _define("less", "whether x1 < x2", _bools_as(int32, ops.less), "2, 1 -> False")
less_equal = _define(
    "less_equal", "whether x1 <= x2", _bools_as(int32, ops.less_equal), "2, 2 -> True"
)


def maximum(x1: Any, x2: Any) -> Tensor:
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
    if is_zero and is_tensor(x1) and x1.dtype != bool_:
        return ops.relu(array(x1))
    return _or_of_bools(ops.logical_or, ops.maximum)(*promoted(x1, x2))


def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Return what `floor_divide` and `mod` return.

    Example:
        >>> import mirrored as mr
        >>> [int(each) for each in mr.experimental.numpy.divmod(7, 2)]
        [3, 1]
    """
    return floor_divide(x1, x2), mod(x1, x2)


def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
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


def hypot(x1: Any, x2: Any) -> Tensor:
    """Return the root of the sum of the squares, element by element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.hypot(3, 4))
        5.0
    """
    return sqrt(add(square(x1), square(x2)))


def _log_of_sum(x1: Any, x2: Any, tail: Callable[[Tensor], Tensor]) -> Tensor:
    a, b = (floats(operand) for operand in promoted(x1, x2))
    distance = a - b  # NaN where both are the same infinity.
    return ops.where(isnan(distance), a + b, ops.maximum(a, b) + tail(-ops.abs(distance)))


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """Return log(exp(x1) + exp(x2)), element by element, without overflow.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.experimental.numpy.logaddexp(0.0, 0.0)), 4)
        0.6931
    """
    return _log_of_sum(x1, x2, lambda x: log1p(exp(x)))


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """Return log2(2**x1 + 2**x2), element by element, without overflow.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.experimental.numpy.logaddexp2(0.0, 0.0)), 4)
        1.0
    """
    return _log_of_sum(x1, x2, lambda x: log1p(exp2(x)) / np.log(2))


@explained
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
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


@explained
def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements are close, as `isclose` has it.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.allclose([1.0], [1.000001]))
        True
    """
    return ops.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Return whether two values are of one shape and have equal elements.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.array_equal([1, 2], [1.0, 2.0]))
        True
    """
    x, y = promoted(a1, a2)
    return ops.reduce_all(ops.equal(x, y)) if x.shape == y.shape else ops.constant(False)


def logical_and(x1: Any, x2: Any) -> Tensor:
    """Return whether both are not 0, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logical_and([1, 1], [0, 2]).numpy()
        array([False,  True])
    """
    return ops.logical_and(booleans(x1), booleans(x2))


def logical_or(x1: Any, x2: Any) -> Tensor:
    """Return whether one of both is not 0, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logical_or([0, 1], [0, 2]).numpy()
        array([False,  True])
    """
    return ops.logical_or(booleans(x1), booleans(x2))


def logical_xor(x1: Any, x2: Any) -> Tensor:
    """Return whether just one of both is not 0, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.logical_xor([0, 1], [1, 2]).numpy()
        array([ True, False])
    """
    return ops.logical_xor(booleans(x1), booleans(x2))


def polyval(p: Any, x: Any) -> Tensor:
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
