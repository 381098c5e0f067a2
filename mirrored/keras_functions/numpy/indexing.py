"""`keras.ops` that read elements by index or by condition."""

from collections.abc import Sequence
from typing import Any, SupportsInt

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._symbolic import Symbolic
from mirrored._types import TensorLike
from mirrored.keras_functions.promotion import (
    promoted,
    promoted_tensors,
    to_indices,
    to_tensors,
    to_truth,
)
from mirrored.numpy_functions import array_indexing
from mirrored.ops import Tensor


def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """Return the slices along an axis that indices name.

    Args:
        x: A tensor or an array.
        indices: Their indices; those below 0 count from the end.
        axis: The axis; None: that of all elements in a row.

    Raises:
        InvalidArgumentError: There is no such axis, or an index is outside of it.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.take([1, 2, 3], [-1, 0]).numpy()
        array([3, 1], dtype=int32)
    """
    tensor, places = ops.convert_to_tensor(x), to_indices(indices)
    if axis is None:
        tensor, axis = ops.reshape(tensor, [-1]), 0
    length = tensor.shape[axis]
    return ops.gather(tensor, ops.where(places < 0, places + length, places), axis=axis)


def take_along_axis(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """Return for each place the element that an index names along an axis.

    Args:
        x: A tensor or an array.
        indices: The indices, of a shape that broadcasts along the other axes.
        axis: The axis; None: that of all elements in a row.

    Raises:
        ValueError: There are more or fewer axes than `x` has.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.take_along_axis([[3, 1]], [[1]], 1).numpy()
        array([[1]], dtype=int32)
    """
    tensor, places = ops.convert_to_tensor(x), to_indices(indices)
    if axis is None:
        tensor, places, axis = ops.reshape(tensor, [-1]), ops.reshape(places, [-1]), 0
    if places.ndim != tensor.ndim:
        raise ValueError(
            "`x` and `indices` must have the same number of dimensions, but receive shape "
            f"{tensor.shape} and {places.shape}."
        )
    return array_indexing.take_along_axis(tensor, places, axis)


def get_item(x: TensorLike, key: Any) -> Tensor:
    """Return `x[key]`.

    Args:
        x: A tensor or an array.
        key: What would stand between brackets.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.get_item([[1, 2], [3, 4]], (1, 0)).numpy().item()
        3
    """
    value: Any = x
    tensor: Any = value if isinstance(value, Symbolic) else ops.convert_to_tensor(value)
    part: Tensor = tensor[key]
    return part


def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """Return where the elements are that are not 0: their indices along each axis, int32.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nonzero([3, 0, 5])[0].numpy()
        array([0, 2], dtype=int32)
    """
    return tuple(
        ops.cast(index, ops.int32) for index in array_indexing.nonzero(ops.convert_to_tensor(x))
    )


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: TensorLike = 0) -> Tensor:
    """Return elements of the first value whose condition is true.

    Args:
        condlist: The conditions.
        choicelist: As many values.
        default: The value where no condition is true.

    Raises:
        ValueError: There are none, or not equally many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.select([[True, False]], [[1, 2]], 9).numpy()
        array([1, 9], dtype=int32)
    """
    if not isinstance(condlist, list | tuple) or not isinstance(choicelist, list | tuple):
        raise ValueError("condlist and choicelist must be lists")
    *choices, other = promoted(*to_tensors(*choicelist), default)
    return array_indexing.select([to_truth(condition) for condition in condlist], choices, other)


def isin(
    x1: TensorLike, x2: TensorLike, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return which elements are among those of another value.

    Args:
        x1: The elements.
        x2: The other value.
        assume_unique: Accepted for compatibility.
        invert: Whether to return which are not.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.isin([1, 2, 3], [3, 1]).numpy()
        array([ True, False,  True])
    """
    first, second = promoted_tensors(x1, x2)
    same = ops.equal(ops.expand_dims(first, -1), ops.reshape(second, [-1]))
    contained = ops.reduce_any(same, axis=-1)
    return ops.logical_not(contained) if invert else contained


def unravel_index(indices: TensorLike, shape: Sequence[SupportsInt]) -> tuple[Tensor, ...]:
    """Return the indices along each axis of elements that are counted in a row.

    Args:
        indices: Their numbers; those below 0 count from the end.
        shape: The shape that they are in.

    Raises:
        ValueError: A size of the shape is not known.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().item() for each in mr.keras.ops.unravel_index(4, (2, 3))]
        [1, 1]
    """
    if None in shape:
        raise ValueError(f"`shape` argument cannot contain `None`. Received: shape={shape}")
    sizes = [int(length) for length in shape]
    flat = to_indices(indices)
    flat = ops.where(flat < 0, flat + int(np.prod(sizes)), flat)
    coordinates = []
    for size in reversed(sizes):
        coordinates.append(ops.floormod(flat, size))
        flat = ops.floordiv(flat, size)
    return tuple(coordinates[::-1])


def where(condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None) -> Any:
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
        places = ops.cast(ops.where(to_truth(condition)), ops.int32)
        return ops.unstack(places, axis=1)
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should not.")
    first, second = promoted(x1, x2)
    return ops.where(to_truth(condition), first, second)


explain_functions(__name__, all_but="get_item")
