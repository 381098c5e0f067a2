"""`keras.ops` of one tensor that keep its dtype, and activations.

Each is a call or two of an operation.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored._symbolic import Symbolic
from mirrored.keras_functions.promotion import booleans as _booleans
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.keras_functions.promotion import numbers as _numbers
from mirrored.layers.activations import log_softmax as _log_softmax_along
from mirrored.layers.activations import softmax as _softmax_along
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor as _is_tensor
from mirrored.ops.spec import FLOATS, INDICES


def rsqrt(x: Any) -> Tensor:
    """Return 1 over the square roots.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.rsqrt(4.0).numpy().item()
        0.5
    """
    return ops.rsqrt(x)


def reciprocal(x: Any) -> Tensor:
    """Return 1 over the elements.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.reciprocal(4.0).numpy().item()
        0.25
    """
    return ops.reciprocal(x)


def negative(x: Any) -> Tensor:
    """Return the elements with the other sign.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.negative(4).numpy().item()
        -4
    """
    return ops.negative(x)


def abs(x: Any) -> Tensor:
    """Return the elements without their signs.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.abs(-4).numpy().item()
        4
    """
    return absolute(x)


def absolute(x: Any) -> Tensor:
    """Return the elements without their signs.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.absolute(-4).numpy().item()
        4
    """
    tensor = ops.convert_to_tensor(x)
    return tensor if tensor.dtype in (ops.uint8, ops.bool_) else ops.abs(tensor)


def square(x: Any) -> Tensor:
    """Return the squares; those of booleans are int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.square(3).numpy().item()
        9
    """
    return ops.square(_numbers(x))


def sign(x: Any) -> Tensor:
    """Return -1, 0 or 1.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sign(-3.0).numpy().item()
        -1.0
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype != ops.uint8:
        return ops.sign(tensor)
    return ops.cast(ops.sign(ops.cast(tensor, ops.int32)), ops.uint8)


@explained
def round(x: Any, decimals: int = 0) -> Tensor:
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
    floats = _floats(tensor)
    factor = ops.cast(10.0**decimals, floats.dtype)
    return ops.cast(ops.divide(ops.round(ops.multiply(floats, factor)), factor), tensor.dtype)


def isnan(x: Any) -> Tensor:
    """Return which elements are NaN.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.isnan([1.0]).numpy().item()
        False
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS:
        return ops.zeros_like(tensor, ops.bool_)
    return ops.is_nan(tensor)


def isinf(x: Any) -> Tensor:
    """Return which elements are infinite.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.isinf([1.0]).numpy().item()
        False
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS:
        return ops.zeros_like(tensor, ops.bool_)
    return ops.is_inf(tensor)


def isfinite(x: Any) -> Tensor:
    """Return which elements are finite.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.isfinite([1.0]).numpy().item()
        True
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype not in FLOATS:
        return ops.ones_like(tensor, ops.bool_)
    return ops.is_finite(tensor)


def logical_not(x: Any) -> Tensor:
    """Return which elements are false, or 0.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logical_not([True]).numpy().item()
        False
    """
    return ops.logical_not(_booleans(x))


def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
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
    return ops.clip_by_value(_numbers(x), x_min, x_max)


def relu(x: Any) -> Tensor:
    """Return the elements, and 0 for those below it.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.relu(-1.0).numpy().item()
        0.0
    """
    return ops.relu(x)


def softplus(x: Any) -> Tensor:
    """Return log(exp(x) + 1).

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.softplus(0.0).numpy().item()
        0.6931471824645996
    """
    return ops.softplus(x)


@explained
def softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """Return the softmax along an axis.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis, or several axes; None: all elements together.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.softmax([0.0, 0.0]).shape
        (2,)
    """
    if axis is None:
        flat = ops.reshape(x, [-1])
        return ops.reshape(ops.softmax(flat), ops.convert_to_tensor(x).shape)
    return _softmax_along(x, axis)


@explained
def log_softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """Return the logarithm of the softmax along an axis.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis, or several axes; None: all elements together.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.log_softmax([0.0, 0.0]).shape
        (2,)
    """
    if axis is None:
        flat = ops.reshape(x, [-1])
        return ops.reshape(ops.log_softmax(flat), ops.convert_to_tensor(x).shape)
    return _log_softmax_along(x, axis)


def is_tensor(x: Any) -> bool:
    """Return whether a value is a tensor or a variable; what `Input` returns is neither.

    Args:
        x: The value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.is_tensor(1)
        False
    """
    return _is_tensor(x) and not isinstance(x, Symbolic)


def stop_gradient(variable: Any) -> Tensor:
    """Return a tensor through which no gradient flows.

    Args:
        variable: A tensor or a variable.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.stop_gradient(1.0).numpy().item()
        1.0
    """
    return ops.stop_gradient(variable)


@explained
def one_hot(
    x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
) -> Tensor:
    """Return rows of 0 with a 1 at each index.

    Args:
        x: The indices; floats lose their fractions.
        num_classes: How many places a row has.
        axis: Along which axis they are.
        dtype: The dtype; None: float32.
        sparse: False: there are no sparse tensors.

    Raises:
        ValueError: A sparse one is asked for.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.one_hot([1], 2).numpy()
        array([[0., 1.]], dtype=float32)
    """
    if sparse:
        raise ValueError("Tensors are not sparse here. Leave `sparse` out.")
    places = ops.convert_to_tensor(x)
    if places.dtype not in INDICES:
        places = ops.cast(places, ops.int64)
    return ops.one_hot(places, num_classes, axis=axis, dtype=dtype or ops.float32)


@explained
def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Return the elements times the part of a normal distribution that is below them.

    Args:
        x: Floats.
        approximate: Whether by a formula with tanh.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.gelu(0.0).numpy().item()
        0.0
    """
    return ops.gelu(x, approximate)
