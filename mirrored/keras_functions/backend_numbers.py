"""Keras' backend functions that compute: reductions, bounds and powers.

Scripts of older Keras write their losses with them. Each is a call or two of an operation.
"""

import math
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.conversion import adopt
from mirrored.ops.spec import default_float


def _numbers(x: Any) -> Tensor:
    """Return a tensor, that of booleans as numbers of floatx."""
    tensor = adopt(x, None)
    return ops.cast(tensor, default_float()) if tensor.dtype == ops.bool_ else tensor


@explained
def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true, or not 0, over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.keras.backend.all(mr.constant([1, 0])))
        False
    """
    return ops.reduce_all(ops.cast(x, ops.bool_), axis, keepdims)


@explained
def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether an element is true, or not 0, over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.keras.backend.any(mr.constant([1, 0])))
        True
    """
    return ops.reduce_any(ops.cast(x, ops.bool_), axis, keepdims)


@explained
def argmax(x: Any, axis: int = -1) -> Tensor:
    """Return the place of the largest element along an axis, int64.

    Args:
        x: A tensor.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> int(mr.keras.backend.argmax(mr.constant([1.0, 3.0])))
        1
    """
    return ops.argmax(x, axis)


@explained
def argmin(x: Any, axis: int = -1) -> Tensor:
    """Return the place of the smallest element along an axis, int64.

    Args:
        x: A tensor.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> int(mr.keras.backend.argmin(mr.constant([1.0, 3.0])))
        0
    """
    return ops.argmin(x, axis)


@explained
def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.max(mr.constant([1.0, 3.0])))
        3.0
    """
    return ops.reduce_max(x, axis, keepdims)


@explained
def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.min(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_min(x, axis, keepdims)


@explained
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.sum(mr.constant([1.0, 3.0])))
        4.0
    """
    return ops.reduce_sum(x, axis, keepdims)


@explained
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.prod(mr.constant([2.0, 3.0])))
        6.0
    """
    return ops.reduce_prod(x, axis, keepdims)


@explained
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.mean(mr.constant([True, False])))
        0.5
    """
    return ops.reduce_mean(_numbers(x), axis, keepdims)


@explained
def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.std(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_std(_numbers(x), axis, keepdims)


@explained
def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes; that of booleans is of floatx.

    Args:
        x: A tensor.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.var(mr.constant([1.0, 3.0])))
        1.0
    """
    return ops.reduce_variance(_numbers(x), axis, keepdims)


def sqrt(x: Any) -> Tensor:
    """Return the square root of each element, and 0 of one below 0.

    Args:
        x: A tensor of floats.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.sqrt(mr.constant([4.0, -1.0])).numpy()
        array([2., 0.], dtype=float32)
    """
    return ops.sqrt(ops.maximum(x, 0.0))


def pow(x: Any, a: Any) -> Tensor:
    """Return each element to a power.

    Args:
        x: A tensor.
        a: The power.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.pow(mr.constant(2.0), 3.0))
        8.0
    """
    return ops.pow(x, a)


def clip(x: Any, min_value: Any, max_value: Any) -> Tensor:
    """Return the elements, none below one bound or above the other.

    Args:
        x: A tensor.
        min_value: The lower bound; None: there is none.
        max_value: The upper bound, which is the lower one where it is less; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.clip(mr.constant([-1.0, 0.5]), 0, 1).numpy()
        array([0. , 0.5], dtype=float32)
    """
    numbers = isinstance(min_value, int | float) and isinstance(max_value, int | float)
    if numbers and max_value < min_value:
        max_value = min_value
    low = -math.inf if min_value is None else min_value
    return ops.clip_by_value(x, low, math.inf if max_value is None else max_value)


def hard_sigmoid(x: Any) -> Tensor:
    """Return 0.2 x + 0.5, between 0 and 1.

    Args:
        x: A tensor of floats.

    Example:
        >>> import mirrored as mr
        >>> float(mr.keras.backend.hard_sigmoid(mr.constant(0.0)))
        0.5
    """
    return ops.clip_by_value(ops.add(ops.multiply(x, 0.2), 0.5), 0.0, 1.0)


@explained
def softmax(x: Any, axis: int = -1) -> Tensor:
    """Return the softmax along an axis.

    Args:
        x: A tensor of two axes or more.
        axis: The axis.

    Raises:
        ValueError: It has fewer axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.softmax(mr.constant([[0.0, 0.0]])).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    if len(x.shape) <= 1:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    return ops.softmax(x, axis)


@explained
def l2_normalize(x: Any, axis: Any = None) -> Tensor:
    """Return the tensor divided by its Euclidean length along axes.

    Args:
        x: A tensor of floats.
        axis: The axis or axes; None: all.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.backend.l2_normalize(mr.constant([3.0, 4.0])).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    return ops.l2_normalize(x, axis)
