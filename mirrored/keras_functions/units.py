"""`keras.ops` of one tensor that are of floats, as which integers are taken.

Each is a call or two of an operation.
"""

from typing import Any

from mirrored import ops
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.ops import Tensor


def exp(x: Any) -> Tensor:
    """Return e to the power of each element. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.exp(0.0).numpy().item()
        1.0
    """
    return ops.exp(_floats(x))


def expm1(x: Any) -> Tensor:
    """Return e to the power of each element, less 1. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.expm1(0.0).numpy().item()
        0.0
    """
    return ops.expm1(_floats(x))


def log(x: Any) -> Tensor:
    """Return the natural logarithms. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.log(1).numpy().item()
        0.0
    """
    return ops.log(_floats(x))


def log1p(x: Any) -> Tensor:
    """Return the logarithms of x + 1. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.log1p(0).numpy().item()
        0.0
    """
    return ops.log1p(_floats(x))


def sqrt(x: Any) -> Tensor:
    """Return the square roots. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sqrt(4).numpy().item()
        2.0
    """
    return ops.sqrt(_floats(x))


def sin(x: Any) -> Tensor:
    """Return the sines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sin(0).numpy().item()
        0.0
    """
    return ops.sin(_floats(x))


def cos(x: Any) -> Tensor:
    """Return the cosines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cos(0).numpy().item()
        1.0
    """
    return ops.cos(_floats(x))


def tan(x: Any) -> Tensor:
    """Return the tangents. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tan(0).numpy().item()
        0.0
    """
    return ops.tan(_floats(x))


def sinh(x: Any) -> Tensor:
    """Return the hyperbolic sines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sinh(0).numpy().item()
        0.0
    """
    return ops.sinh(_floats(x))


def cosh(x: Any) -> Tensor:
    """Return the hyperbolic cosines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cosh(0).numpy().item()
        1.0
    """
    return ops.cosh(_floats(x))


def tanh(x: Any) -> Tensor:
    """Return the hyperbolic tangents. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tanh(0).numpy().item()
        0.0
    """
    return ops.tanh(_floats(x))


def arcsin(x: Any) -> Tensor:
    """Return the inverse sines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.arcsin(0).numpy().item()
        0.0
    """
    return ops.asin(_floats(x))


def arccos(x: Any) -> Tensor:
    """Return the inverse cosines. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.arccos(1).numpy().item()
        0.0
    """
    return ops.acos(_floats(x))


def arctan(x: Any) -> Tensor:
    """Return the inverse tangents. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.arctan(0).numpy().item()
        0.0
    """
    return ops.atan(_floats(x))


def floor(x: Any) -> Tensor:
    """Return the elements, rounded down. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.floor(1.5).numpy().item()
        1.0
    """
    return ops.floor(_floats(x))


def ceil(x: Any) -> Tensor:
    """Return the elements, rounded up. Integers become floats of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ceil(1.5).numpy().item()
        2.0
    """
    return ops.ceil(_floats(x))
