"""`keras.ops` of two tensors other than operators and comparisons.

They compute in the dtype that both promote to.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.float_elementwise import log10
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import common_floats as _common_floats
from mirrored.keras_functions.promotion import result_type as _result_type
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.numpy_functions import ufuncs as binary
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS, DType, float_limits

_Binary = Callable[[Any, Any], Tensor]


def _define(
    name: str, summary: str, function: _Binary, example: str, convert: Any = _common_floats
) -> _Binary:
    """Return a function of two tensors, with a docstring of what it returns and an example."""

    def f(x1: Any, x2: Any) -> Tensor:
        return function(*convert(x1, x2))

    f.__name__ = f.__qualname__ = name
    arguments, result = example.split(" -> ")
    kind = "in the dtype that both promote to" + " as floats" * (convert is not _common)
    f.__doc__ = f"""Return {summary}, {kind}.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one, of a shape that broadcasts.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.{name}({arguments}).numpy().item()
        {result}
    """
    return explained(f)


def _wide_floats(x1: Any, x2: Any) -> list[Tensor]:
    """Return two values as floats: integers become float64, as TensorFlow's Keras has it."""
    first, second = _common(x1, x2)
    if first.dtype in INTEGERS and first.dtype.itemsize == 8:
        return [ops.cast(operand, ops.float64) for operand in (first, second)]
    return _common_floats(first, second)


def _left_of_nan(choose: _Binary) -> _Binary:
    """Return a function of two tensors that returns the other one where one is NaN."""

    def f(first: Tensor, second: Tensor) -> Tensor:
        if first.dtype not in FLOATS:
            return choose(first, second)
        chosen = ops.where(ops.is_nan(second), first, choose(first, second))
        return ops.where(ops.is_nan(first), second, chosen)

    return f


def _fmod(first: Tensor, second: Tensor) -> Tensor:
    """Return what is left over, of the sign of the first one."""
    if first.dtype.kind in "bu":
        return ops.floormod(first, second)
    left = ops.floormod(ops.abs(first), ops.abs(second))
    return ops.where(ops.less(first, ops.zeros_like(first)), ops.negative(left), left)


def _on_widest(function: _Binary, least: int) -> _Binary:
    def f(first: Tensor, second: Tensor) -> Tensor:
        if first.dtype in FLOATS or first.dtype.itemsize >= least:
            return function(first, second)
        return ops.cast(
            function(ops.cast(first, ops.int32), ops.cast(second, ops.int32)), first.dtype
        )

    return f


arctan2 = _define("arctan2", "the angle of the point (x2, x1)", ops.atan2, "0.0, 1.0 -> 0.0")
hypot = _define(
    "hypot", "the root of the sum of the squares", binary.hypot, "3.0, 4.0 -> 5.0", _wide_floats
)
heaviside = _define(
    "heaviside",
    "0 below 0, 1 above, and x2 at 0",
    binary.heaviside,
    "0.0, 2.0 -> 2.0",
    _wide_floats,
)
logaddexp = _define(
    "logaddexp",
    "log(exp(x1) + exp(x2)) without overflow",
    binary.logaddexp,
    "0.0, 0.0 -> 0.6931...",
)
logaddexp2 = _define(
    "logaddexp2", "log2(2**x1 + 2**x2) without overflow", binary.logaddexp2, "0.0, 0.0 -> 1.0"
)
nextafter = _define(
    "nextafter", "the next number after x1 in the direction of x2", ops.nextafter, "0.5, 0.5 -> 0.5"
)
divide_no_nan = _define(
    "divide_no_nan", "the quotients, and 0 where x2 is 0", ops.divide_no_nan, "1.0, 0.0 -> 0.0"
)
fmax = _define(
    "fmax",
    "the larger one, or that which is not NaN",
    _left_of_nan(ops.maximum),
    "1, 2 -> 2",
    _common,
)
fmin = _define(
    "fmin",
    "the smaller one, or that which is not NaN",
    _left_of_nan(ops.minimum),
    "1, 2 -> 1",
    _common,
)
fmod = _define(
    "fmod",
    "what division leaves, of the sign of x1",
    _on_widest(_fmod, 4),
    "-7.0, 3.0 -> -1.0",
    _common,
)


@explained
def ldexp(x1: Any, x2: Any) -> Tensor:
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
    first, exponent = _tensors(x1, x2)
    if exponent.dtype not in INTEGERS:
        raise TypeError(
            f"ldexp exponent must be an integer type. Received: x2 dtype={exponent.dtype.name}"
        )
    kind = _result_type(first.dtype, exponent.dtype, float)
    power = ops.pow(ops.constant(2.0, kind), ops.cast(exponent, kind))
    return ops.multiply(ops.cast(first, kind), power)


@explained
def isclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
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
    first, second = _common_floats(x1, x2)
    near = binary.isclose(first, second, rtol, atol, equal_nan)
    return ops.logical_or(near, ops.equal(first, second))  # The same infinity is close to itself.


@explained
def allclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether all elements are close, as `isclose` has it.

    Args: as for `isclose`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.allclose([1.0, 2.0], [1.0, 2.1]).numpy().item()
        False
    """
    return ops.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


@explained
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Return the elements with numbers in the place of NaN and infinities.

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


@explained
def psnr(x1: Any, x2: Any, max_val: Any) -> Tensor:
    """Return 20 log10(max_val) - 10 log10(mean((x1 - x2)^2)), the ratio of a signal and its noise.

    Args:
        x1: Numbers.
        x2: Others of the same shape.
        max_val: The largest number that there may be.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.psnr([1.0], [0.0], 1.0).numpy().item()
        0.0
    """
    first, second = _common_floats(x1, x2)
    if first.shape != second.shape:
        raise ValueError(
            f"Input shapes {first.shape} and {second.shape} must match for PSNR calculation. "
        )
    error = ops.reduce_mean(ops.squared_difference(first, second))
    largest = ops.cast(max_val, first.dtype)
    return ops.subtract(ops.multiply(log10(largest), 20.0), ops.multiply(log10(error), 10.0))


@explained
def saturate_cast(x: Any, dtype: Any) -> Tensor:
    """Return the elements in another dtype, in which what is beyond its limits is at them.

    Args:
        x: Numbers.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.saturate_cast([-5, 300], "uint8").numpy()
        array([  0, 255], dtype=uint8)
    """
    tensor, kind = ops.convert_to_tensor(x), ops.as_dtype(dtype)
    if ops.bool_ in (tensor.dtype, kind) or tensor.dtype == kind:
        return ops.cast(tensor, kind)
    own, to = _limits(tensor.dtype), _limits(kind)
    low, high = max(own[0], to[0]), min(own[1], to[1])
    if tensor.dtype in FLOATS and float(np.asarray(high, tensor.dtype)) > high:
        # The largest float that is no larger.
        high = float(np.nextafter(np.asarray(high, tensor.dtype), np.asarray(0, tensor.dtype)))
    return ops.cast(ops.clip_by_value(tensor, low, high), kind)


def _limits(dtype: DType) -> tuple[Any, Any]:
    """Return the least and the largest number of a dtype."""
    if dtype in FLOATS:
        largest = float_limits(dtype)[1]
        return -largest, largest
    return np.iinfo(dtype).min, np.iinfo(dtype).max
