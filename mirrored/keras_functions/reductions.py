"""`keras.ops` over axes, with Keras' rules for integers and booleans.

Each is a call or two of an operation.
"""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.keras_functions.promotion import booleans as _booleans
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.keras_functions.promotion import summands as _summands
from mirrored.ops import Tensor


def _place(find: Callable[..., Tensor], x: Any, axis: int | None, keepdims: bool) -> Tensor:
    """Return the place that an operation finds; booleans count as 0 and 1."""
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype == ops.bool_:
        tensor = ops.cast(tensor, ops.int32)
    flat = ops.reshape(tensor, [-1]) if axis is None else tensor
    place = find(flat, 0 if axis is None else axis, output_type=ops.int32)
    if not keepdims:
        return place
    return ops.reshape(place, [1] * tensor.ndim) if axis is None else ops.expand_dims(place, axis)


@explained
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes; that of booleans and short integers is of 32 bits.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sum([1, 2]).numpy().item()
        3
    """
    return ops.reduce_sum(_summands(x), axis, keepdims)


@explained
def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """Return the product over axes; that of booleans and short integers is of 32 bits.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        dtype: The dtype; None: that of `x`, of 32 bits at least.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.prod([2, 3]).numpy().item()
        6
    """
    return ops.reduce_prod(_summands(x) if dtype is None else ops.cast(x, dtype), axis, keepdims)


@explained
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.mean([1, 2]).numpy().item()
        1.5
    """
    return ops.reduce_mean(_floats(x), axis, keepdims)


@explained
def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the variance over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.var([1.0, 3.0]).numpy().item()
        1.0
    """
    return ops.reduce_variance(_floats(x), axis, keepdims)


@explained
def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes; that of integers is of floatx.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.std([1.0, 3.0]).numpy().item()
        1.0
    """
    return ops.reduce_std(_floats(x), axis, keepdims)


@explained
def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        initial: A number that counts as one more element; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.max([1, 2]).numpy().item()
        2
    """
    tensor = ops.convert_to_tensor(x)
    if not tensor.size and initial is None:
        raise InvalidArgumentError("Cannot compute the max of an empty tensor.")
    if tensor.dtype == ops.bool_:
        result = ops.cast(ops.reduce_any(tensor, axis, keepdims), ops.int32)
    else:
        result = ops.reduce_max(tensor, axis, keepdims)
    if initial is not None:
        result = ops.maximum(result, ops.cast(initial, result.dtype))
    return ops.cast(result, tensor.dtype)


@explained
def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.
        initial: A number that counts as one more element; None: there is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.min([1, 2]).numpy().item()
        1
    """
    tensor = ops.convert_to_tensor(x)
    if not tensor.size and initial is None:
        raise InvalidArgumentError("Cannot compute the min of an empty tensor.")
    if tensor.dtype == ops.bool_:
        result = ops.cast(ops.reduce_all(tensor, axis, keepdims), ops.int32)
    else:
        result = ops.reduce_min(tensor, axis, keepdims)
    if initial is not None:
        result = ops.minimum(result, ops.cast(initial, result.dtype))
    return ops.cast(result, tensor.dtype)


@explained
def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.amax([1, 2]).numpy().item()
        2
    """
    return max(x, axis, keepdims)


@explained
def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.amin([1, 2]).numpy().item()
        1
    """
    return min(x, axis, keepdims)


@explained
def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true, or not 0, over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.all([1, 0]).numpy().item()
        False
    """
    return ops.reduce_all(_booleans(x), axis, keepdims)


@explained
def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether an element is true, or not 0, over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.any([1, 0]).numpy().item()
        True
    """
    return ops.reduce_any(_booleans(x), axis, keepdims)


@explained
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the largest element, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis along which it is; None: in all elements in a row.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argmax([1, 3, 2]).numpy().item()
        1
    """
    return _place(ops.argmax, x, axis, keepdims)


@explained
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the smallest element, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis along which it is; None: in all elements in a row.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argmin([1, 3, 2]).numpy().item()
        0
    """
    return _place(ops.argmin, x, axis, keepdims)


@explained
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logsumexp([0.0]).numpy().item()
        0.0
    """
    return ops.reduce_logsumexp(x, axis, keepdims)
