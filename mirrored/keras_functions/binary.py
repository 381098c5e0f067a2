"""`keras.ops` of two tensors, in the dtype that Keras 3 promotes both to.

A number of Python's counts less than a tensor: it changes no integer to int64, nor a float's width.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import booleans as _booleans
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import multiplied as _multiplied
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.ops import Tensor


def add(x1: Any, x2: Any) -> Tensor:
    """Return the sums, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.add(1, 2.5).numpy().item()
        3.5
    """
    first, second = _common(x1, x2)
    return ops.add(first, second)


def subtract(x1: Any, x2: Any) -> Tensor:
    """Return the differences, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.subtract(1, 2.5).numpy().item()
        -1.5
    """
    first, second = _common(x1, x2)
    return ops.subtract(first, second)


def multiply(x1: Any, x2: Any) -> Tensor:
    """Return the products, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.multiply(2, 2.5).numpy().item()
        5.0
    """
    first, second = _common(x1, x2)
    return ops.multiply(first, second)


def divide(x1: Any, x2: Any) -> Tensor:
    """Return the quotients, which are floats.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.divide(1, 2).numpy().item()
        0.5
    """
    first, second = _common(x1, x2, float)
    return ops.divide(first, second)


def true_divide(x1: Any, x2: Any) -> Tensor:
    """Return the quotients, which are floats.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.true_divide(1, 2).numpy().item()
        0.5
    """
    return divide(x1, x2)


def floor_divide(x1: Any, x2: Any) -> Tensor:
    """Return the quotients, rounded down, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.floor_divide(7, 2).numpy().item()
        3
    """
    first, second = _common(x1, x2)
    return ops.floordiv(first, second)


def mod(x1: Any, x2: Any) -> Tensor:
    """Return what is left over, of the sign of `x2`, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.mod(-7, 3).numpy().item()
        2
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.floormod(first, second)


def power(x1: Any, x2: Any) -> Tensor:
    """Return `x1` to the power of `x2`, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.power(2.0, 3).numpy().item()
        8.0
    """
    first, second = _common(x1, x2)
    if first.dtype != ops.uint8:
        return ops.pow(first, second)
    return ops.cast(ops.pow(ops.cast(first, ops.int32), ops.cast(second, ops.int32)), ops.uint8)


def maximum(x1: Any, x2: Any) -> Tensor:
    """Return the larger ones, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.maximum(1, 2.5).numpy().item()
        2.5
    """
    first, second = _common(x1, x2)
    return ops.maximum(first, second)


def minimum(x1: Any, x2: Any) -> Tensor:
    """Return the smaller ones, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.minimum(1, 2.5).numpy().item()
        1.0
    """
    first, second = _common(x1, x2)
    return ops.minimum(first, second)


def equal(x1: Any, x2: Any) -> Tensor:
    """Return which elements are equal.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.equal(1, 2.5).numpy().item()
        False
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.equal(first, second)


def not_equal(x1: Any, x2: Any) -> Tensor:
    """Return which elements differ.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.not_equal(1, 2.5).numpy().item()
        True
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.not_equal(first, second)


def greater(x1: Any, x2: Any) -> Tensor:
    """Return which elements are greater in `x1`.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.greater(1, 2.5).numpy().item()
        False
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.greater(first, second)


def greater_equal(x1: Any, x2: Any) -> Tensor:
    """Return which elements are not less in `x1`.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.greater_equal(1, 2.5).numpy().item()
        False
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.greater_equal(first, second)


def less(x1: Any, x2: Any) -> Tensor:
    """Return which elements are less in `x1`.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.less(1, 2.5).numpy().item()
        True
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.less(first, second)


def less_equal(x1: Any, x2: Any) -> Tensor:
    """Return which elements are not greater in `x1`.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.less_equal(1, 2.5).numpy().item()
        True
    """
    first, second = _common(*_tensors(x1, x2))
    return ops.less_equal(first, second)


def logical_and(x1: Any, x2: Any) -> Tensor:
    """Return where both are true, or not 0.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logical_and([True], [False]).numpy().item()
        False
    """
    return ops.logical_and(_booleans(x1), _booleans(x2))


def logical_or(x1: Any, x2: Any) -> Tensor:
    """Return where either of both are true, or not 0.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logical_or([True], [False]).numpy().item()
        True
    """
    return ops.logical_or(_booleans(x1), _booleans(x2))


def logical_xor(x1: Any, x2: Any) -> Tensor:
    """Return where one alone of both are true, or not 0.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logical_xor([True], [False]).numpy().item()
        True
    """
    return ops.logical_xor(_booleans(x1), _booleans(x2))


def matmul(x1: Any, x2: Any) -> Tensor:
    """Return the matrix product, also with vectors, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.matmul([[1, 2]], [[3.0], [4.0]]).numpy().item()
        11.0
    """
    return _multiplied(_matrix_product, x1, x2)


def _matrix_product(first: Tensor, second: Tensor) -> Tensor:
    added = [-2] * (first.ndim == 1) + [-1] * (second.ndim == 1)
    first = ops.expand_dims(first, 0) if first.ndim == 1 else first
    second = ops.expand_dims(second, 1) if second.ndim == 1 else second
    product = ops.matmul(first, second)
    return ops.squeeze(product, added) if added else product


@explained
def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Return `x1` where a condition holds and `x2` elsewhere; without both the indices, by axis.

    Args:
        condition: Booleans, or numbers that are not 0.
        x1: A tensor, an array or a number.
        x2: Another one.

    Raises:
        ValueError: One of `x1` and `x2` is given without the other.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.where([True, False], 1, 2.5).numpy()
        array([1. , 2.5], dtype=float32)
    """
    if x1 is None and x2 is None:
        places = ops.cast(ops.where(_booleans(condition)), ops.int32)
        return ops.unstack(places, axis=1)
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should not.")
    first, second = _common(x1, x2)
    return ops.where(_booleans(condition), first, second)
