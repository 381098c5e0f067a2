"""`keras.ops` that read and write elements by index."""

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored._symbolic import Symbolic
from mirrored.keras_functions.elementwise import one_hot
from mirrored.keras_functions.promotion import booleans as _booleans
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.numpy_functions import array_indexing as selection
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INDICES


def _indices(x: Any) -> Tensor:
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype in FLOATS:
        return ops.cast(tensor, ops.int64)
    return tensor if tensor.dtype in INDICES else ops.cast(tensor, ops.int64)


@explained
def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
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
    tensor, places = ops.convert_to_tensor(x), _indices(indices)
    if axis is None:
        tensor, axis = ops.reshape(tensor, [-1]), 0
    length = tensor.shape[axis]
    return ops.gather(tensor, ops.where(places < 0, places + length, places), axis=axis)


@explained
def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
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
    tensor, places = ops.convert_to_tensor(x), _indices(indices)
    if axis is None:
        tensor, places, axis = ops.reshape(tensor, [-1]), ops.reshape(places, [-1]), 0
    if places.ndim != tensor.ndim:
        raise ValueError(
            "`x` and `indices` must have the same number of dimensions, but receive shape "
            f"{tensor.shape} and {places.shape}."
        )
    return selection.take_along_axis(tensor, places, axis)


def get_item(x: Any, key: Any) -> Tensor:
    """Return `x[key]`.

    Args:
        x: A tensor or an array.
        key: What would stand between brackets.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.get_item([[1, 2], [3, 4]], (1, 0)).numpy().item()
        3
    """
    tensor: Any = x if isinstance(x, Symbolic) else ops.convert_to_tensor(x)
    part: Tensor = tensor[key]
    return part


@explained
def slice(inputs: Any, start_indices: Any, shape: Any) -> Tensor:
    """Return a part of a tensor.

    Args:
        inputs: A tensor or an array.
        start_indices: Where the part begins, for each axis.
        shape: Its shape.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.slice([[1, 2], [3, 4]], (1, 0), (1, 2)).numpy()
        array([[3, 4]], dtype=int32)
    """
    return ops.slice(inputs, start_indices, shape)


@explained
def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Tensor:
    """Return a tensor with a part replaced.

    Args:
        inputs: A tensor or an array.
        start_indices: Where the part begins, for each axis; what would reach over the end begins
            earlier.
        updates: What stands in its place, of as many axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.slice_update([[1, 2], [3, 4]], (1, 0), [[8, 9]]).numpy()
        array([[1, 2],
               [8, 9]], dtype=int32)
    """
    tensor = ops.convert_to_tensor(inputs)
    values = ops.cast(updates, tensor.dtype)
    where = start_indices if isinstance(start_indices, list | tuple) else ops.unstack(start_indices)
    places: Any = 0
    for axis, start in enumerate(where):
        size, count = tensor.shape[axis], values.shape[axis]
        begin = ops.clip_by_value(ops.cast(start, ops.int64), 0, size - count)
        along = ops.range(count, dtype=ops.int64)
        along = ops.reshape(along, [-1 if axis == i else 1 for i in range(tensor.ndim)])
        places = places * size + (along + begin)
    flat = ops.tensor_scatter_nd_update(
        ops.reshape(tensor, [-1]), ops.reshape(places, [-1, 1]), ops.reshape(values, [-1])
    )
    return ops.reshape(flat, tensor.shape)


@explained
def scatter(indices: Any, values: Any, shape: Any) -> Tensor:
    """Return zeros, with values added at places.

    Args:
        indices: The places, of shape (count, axes).
        values: The values, one a place, or a slice for each.
        shape: The shape of the result.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.scatter([[0], [2], [0]], [1, 2, 3], (3,)).numpy()
        array([4, 0, 2], dtype=int32)
    """
    return ops.scatter_nd(_indices(indices), ops.convert_to_tensor(values), shape)


_REDUCTIONS = {
    None: "tensor_scatter_nd_update",
    "add": "tensor_scatter_nd_add",
    "max": "tensor_scatter_nd_max",
    "min": "tensor_scatter_nd_min",
}


@explained
def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: Any = None) -> Tensor:
    """Return a tensor with values at places.

    Args:
        inputs: The tensor.
        indices: The places, of shape (count, axes).
        updates: The values, one a place, or a slice for each.
        reduction: What becomes of a value and what is there: None: the value stands alone; "add",
            "max", "min" or "mul".

    Raises:
        ValueError: The reduction is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.scatter_update([1, 2, 3], [[0], [2]], [8, 9]).numpy()
        array([8, 2, 9], dtype=int32)
    """
    tensor, places = ops.convert_to_tensor(inputs), _indices(indices)
    values = ops.cast(updates, tensor.dtype)
    if reduction in _REDUCTIONS:
        written: Tensor = getattr(ops, _REDUCTIONS[reduction])(tensor, places, values)
        return written
    if reduction != "mul":
        raise ValueError(
            f"Unsupported reduction: {reduction}. It is None, 'add', 'max', 'min' or 'mul'."
        )
    # One after the other: a place may be named twice.
    for i in range(places.shape[0]):
        place = places[i : i + 1]
        factor = values[i : i + 1] if values.ndim else values
        tensor = ops.tensor_scatter_nd_update(tensor, place, ops.gather_nd(tensor, place) * factor)
    return tensor


@explained
def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return where the elements are that are not 0: their indices along each axis, int32.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nonzero([3, 0, 5])[0].numpy()
        array([0, 2], dtype=int32)
    """
    return tuple(
        ops.cast(index, ops.int32) for index in selection.nonzero(ops.convert_to_tensor(x))
    )


@explained
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
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
    *choices, other = _common(*_tensors(*choicelist), default)
    return selection.select([_booleans(condition) for condition in condlist], choices, other)


@explained
def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
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
    first, second = _common(*_tensors(x1, x2))
    same = ops.equal(ops.expand_dims(first, -1), ops.reshape(second, [-1]))
    contained = ops.reduce_any(same, axis=-1)
    return ops.logical_not(contained) if invert else contained


@explained
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
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
    flat = _indices(indices)
    flat = ops.where(flat < 0, flat + int(np.prod(sizes)), flat)
    coordinates = []
    for size in builtins.reversed(sizes):
        coordinates.append(ops.floormod(flat, size))
        flat = ops.floordiv(flat, size)
    return tuple(coordinates[::-1])


@explained
def multi_hot(
    inputs: Any,
    num_classes: int | None = None,
    axis: int = -1,
    dtype: Any = None,
    sparse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Return rows of 0 with a 1 at each index that is in a row of indices.

    Args:
        inputs: The indices; those outside have no place.
        num_classes: How many places a row has.
        axis: Along which axis they are.
        dtype: The dtype; None: float32.
        sparse: False: there are no sparse tensors.
        **kwargs: `num_tokens`, an older name of `num_classes`.

    Raises:
        ValueError: The number of places is missing, or something else is given by name.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.multi_hot([[0, 2]], 3).numpy()
        array([[1., 0., 1.]], dtype=float32)
    """
    num_classes = kwargs.pop("num_tokens", num_classes)
    if num_classes is None:
        raise ValueError("Argument `num_classes` must be specified.")
    if kwargs:
        raise ValueError(f"Unknown arguments: {kwargs}. Leave them out.")
    places = _indices(inputs)
    over = 1 if places.ndim > 1 else 0
    encoded = one_hot(places, num_classes, axis=axis, dtype=dtype, sparse=sparse)
    if encoded.dtype == ops.bool_:
        return ops.reduce_any(encoded, axis=over)
    return ops.reduce_max(encoded, axis=over)
