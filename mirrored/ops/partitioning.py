"""Rows that are chosen, repeated, dealt out and put together again, by numbers that are known.

How many rows come out depends on values, so a recorded function knows these when it is recorded.
"""

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import (
    adopt,
    constant,
    convert_to_tensor,
    from_host,
    is_tensor,
    known_values,
)
from mirrored.ops.creation import FILL
from mirrored.ops.gathering import GATHER
from mirrored.ops.scattering import TENSOR_SCATTER_UPDATE
from mirrored.ops.shaping import BROADCAST_TO, CAST, CONCAT, RESHAPE
from mirrored.ops.spec import INTEGERS, DType, int32, int64, shape_text
from mirrored.ops.tensor import Tensor, operators


def _rows_at(x: Tensor, places: Any, axis: int = 0) -> Tensor:
    return GATHER(x, from_host(np.asarray(places, int64)), axis=axis, outside=False)


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, axis: int | None = None, name: str | None = "boolean_mask"
) -> Tensor:
    """Return the elements, or slices, for which a mask is true, along one axis.

    Args:
        tensor: The tensor.
        mask: Booleans, or numbers of which 0 is false, of the shape of some axes in a row. In a
            recorded function it is known when that is recorded.
        axis: The first of these axes; None: 0.
        name: Accepted for compatibility.

    Raises:
        ValueError: The mask is a scalar, or not of the shape of these axes.

    Example:
        >>> import mirrored as mr
        >>> mr.boolean_mask([[1, 2], [3, 4], [5, 6]], [True, False, True]).numpy()
        array([[1, 2],
               [5, 6]], dtype=int32)
    """
    x, chosen = adopt(tensor, None), adopt(mask, None)
    if not chosen.ndim:
        raise ValueError("mask cannot be scalar.")
    first = 0 if axis is None else int(axis)
    end = first + chosen.ndim
    masked = x.shape[first:end]
    if masked != chosen.shape:
        raise ValueError(f"Shapes {masked} and {chosen.shape} are incompatible")
    before = x.shape[:first]
    flat = RESHAPE(x, shape=(*before, math.prod(masked), *x.shape[end:]))
    places = known_values(chosen, "elements", "Use `where(mask, x, 0.0)`, or pass a known mask.")
    return _rows_at(flat, np.flatnonzero(places), len(before))


def repeat(
    input: TensorLike, repeats: TensorLike, axis: AxisLike | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor of which each slice along an axis comes several times in a row.

    Args:
        input: The tensor.
        repeats: How many times; a number, or one for each slice. In a recorded function they are
            known when that is recorded.
        axis: The axis; None: that of all elements in a row.
        name: Accepted for compatibility.

    Raises:
        TypeError: `repeats` are no integers, or the axis is none.
        ValueError: There is no such axis, or not one number a slice.
        InvalidArgumentError: One number is negative. (Of several, one below 0 is 0.)

    Example:
        >>> import mirrored as mr
        >>> mr.repeat([1, 2, 3], [2, 0, 1]).numpy()
        array([1, 1, 3], dtype=int32)
    """
    x = adopt(input, None)
    if axis is None or not x.ndim:
        x, axis = RESHAPE(x, shape=(x.size,)), 0 if axis is None else axis
    if not isinstance(axis, int | np.integer):
        raise TypeError(
            f"Argument `axis` must be an int. Received `axis` = {axis} of type "
            f"{type(axis).__name__}"
        )
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis={axis} out of bounds: expected {-x.ndim}<=axis<{x.ndim}")
    place = int(axis) % x.ndim
    counts: Any = repeats
    times = adopt(int(counts) if isinstance(counts, bool) else counts, None)
    if times.dtype not in INTEGERS:
        raise TypeError(
            "Argument `tensor` (name: repeats) must be of type integer. Received `tensor` = "
            f"{repeats} of dtype: {times.dtype.name}"
        )
    if times.ndim > 1:
        raise ValueError(f"Shape {times.shape} must have rank at most 1")
    wide = CAST(times, dtype=int64)
    counts = known_values(wide, "slices", "Pass numbers, or use `gather` with known indices.")
    size = x.shape[place]
    if counts.size == 1:
        return _each_repeated(x, place, int(counts.reshape(-1)[0]))
    if counts.size != size:
        raise ValueError(f"Dimensions {size} and {counts.size} are not compatible")
    return _rows_at(x, np.repeat(np.arange(size), np.maximum(counts, 0)), place)


def _each_repeated(x: Tensor, axis: int, count: int) -> Tensor:
    if count < 0:
        raise InvalidArgumentError(f"Expected multiples >= 0, but got {count} [Op:Tile]")
    before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = RESHAPE(x, shape=(*before, size, 1, *behind))
    spread = BROADCAST_TO(apart, shape=(*before, size, count, *behind))
    return RESHAPE(spread, shape=(*before, size * count, *behind))


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: SupportsIndex, name: str | None = None
) -> list[Tensor]:
    """Return rows dealt out by their numbers, a tensor a number.

    Args:
        data: The rows: slices behind the axes of `partitions`.
        partitions: Int32, for each row the number of its tensor. In a recorded function they are
            known when that is recorded.
        num_partitions: How many tensors there are.
        name: Accepted for compatibility.

    Raises:
        TypeError: `partitions` are no integers.
        ValueError: They are a tensor of another dtype.
        InvalidArgumentError: Shapes do not fit, or there is no such tensor, or there are none.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.dynamic_partition([1, 2, 3], [0, 1, 0], 2)]
        [[1, 3], [2]]
    """
    x, numbers, count = adopt(data, None), convert_to_tensor(partitions, int32), int(num_partitions)
    if count < 1:
        raise InvalidArgumentError(
            f"Value for attr 'num_partitions' of {count} must be at least minimum 1 "
            "[Op:DynamicPartition]"
        )
    if x.shape[: numbers.ndim] != numbers.shape:
        raise InvalidArgumentError(
            f"data.shape must start with partitions.shape, got data.shape = {shape_text(x.shape)}, "
            f"partitions.shape = {shape_text(numbers.shape)} [Op:DynamicPartition]"
        )
    values = known_values(numbers, "rows", "Use masks, or a sum by `math.unsorted_segment_sum`.")
    wrong = np.argwhere((values < 0) | (values >= count))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise InvalidArgumentError(
            f"partitions{shape_text(place)} = {values[place]} is not in [0, {count}) "
            "[Op:DynamicPartition]"
        )
    rows = RESHAPE(x, shape=(values.size, *x.shape[values.ndim :]))
    return [_rows_at(rows, np.flatnonzero(values == number)) for number in np.arange(count)]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Return one tensor of the rows of several, each at its index.

    Args:
        indices: Int32, for each tensor the indices of its rows. In a recorded function they are
            known when that is recorded.
        data: The tensors: slices behind the axes of their indices. Of several rows for one index
            the last one stays; where none is, there are zeros.
        name: Accepted for compatibility.

    Raises:
        TypeError: Indices are no integers.
        ValueError: There are not as many indices as tensors.
        InvalidArgumentError: Shapes or dtypes do not fit, an index is negative, or there are no
            tensors.

    Example:
        >>> import mirrored as mr
        >>> mr.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]]).numpy()
        array([1, 2, 3], dtype=int32)
    """
    if len(indices) != len(data):
        raise ValueError(
            f"List argument 'data' to 'dynamic_stitch' Op with length {len(data)} must match "
            f"length {len(indices)} of argument 'indices'."
        )
    if not data:
        raise InvalidArgumentError("At least one tensor is needed. [Op:DynamicStitch]")
    numbers = [index if is_tensor(index) else convert_to_tensor(index, int32) for index in indices]
    values = _of_one_dtype(data)
    rows = [_rows_of(i, index, x) for i, (index, x) in enumerate(zip(numbers, values, strict=True))]
    for i, block in enumerate(rows):
        if block.shape[1:] != rows[0].shape[1:]:
            raise InvalidArgumentError(
                f"Need data[0].shape[1:] = data[{i}].shape[1:], got rows of shape "
                f"{shape_text(rows[0].shape[1:])} and {shape_text(block.shape[1:])} "
                "[Op:DynamicStitch]"
            )
    instead = "Use `scatter_nd`, which is told the shape."
    known = [known_values(number, "rows", instead) for number in numbers]
    places = np.concatenate([array.reshape(-1) for array in known])
    if places.size and places.min() < 0:
        raise InvalidArgumentError(
            f"indices[{np.argmax(places < 0)}] is out of range [Op:DynamicStitch]"
        )
    shape = (int(places.max(initial=-1)) + 1, *rows[0].shape[1:])
    matrix, width = CONCAT(*rows, axis=0), math.prod(shape[1:])
    stitched = TENSOR_SCATTER_UPDATE(
        FILL(shape=(shape[0], width), value=0, dtype=matrix.dtype),
        constant(places),
        RESHAPE(matrix, shape=(places.size, width)),
    )
    return RESHAPE(stitched, shape=shape)


def _of_one_dtype(data: Sequence[Any]) -> list[Tensor]:
    """Return values as tensors; lists take the dtype of the first tensor, or else of the first."""
    known: list[DType] = [adopt(value, None).dtype for value in data if is_tensor(value)]
    dtype = known[0] if known else adopt(data[0], None).dtype
    return [adopt(e, None) if is_tensor(e) else convert_to_tensor(e, dtype) for e in data]


def _rows_of(i: int, indices: Any, x: Tensor) -> Tensor:
    if indices.dtype != int32:
        raise InvalidArgumentError(
            f"cannot compute DynamicStitch as input #{i}(zero-based) was expected to be a int32 "
            f"tensor but is a {indices.dtype.name} tensor [Op:DynamicStitch]"
        )
    if x.shape[: indices.ndim] != indices.shape:
        raise InvalidArgumentError(
            f"data[{i}].shape = {shape_text(x.shape)} does not start with indices[{i}].shape = "
            f"{shape_text(indices.shape)} [Op:DynamicStitch]"
        )
    return RESHAPE(x, shape=(indices.size, *x.shape[indices.ndim :]))


explain_functions(__name__, all_but="")
operators["boolean_mask"] = boolean_mask
