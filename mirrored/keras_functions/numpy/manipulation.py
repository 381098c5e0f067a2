"""`keras.ops` that reshape, move, join, split, repeat and flip tensors without computing."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, ShapeLike, TensorLike
from mirrored.keras_functions.promotion import promoted_tensors
from mirrored.numpy_functions import array_manipulation
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room


def _axis(axis: int, rank: int) -> int:
    """Return an axis counted from 0."""
    if not -rank <= axis < rank:
        raise ValueError(
            f"axis {axis} is out of bounds for array of dimension {rank}. Use an axis from "
            f"{-rank} to {rank - 1}."
        )
    return axis % rank


def reshape(x: TensorLike, newshape: ShapeLike) -> Tensor:
    """Return the elements in another shape.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        newshape: The shape; one size may be -1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.reshape([1, 2], (2, 1)).shape
        (2, 1)
    """
    return ops.reshape(x, newshape)


def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Return the tensor with its axes in another order.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axes: For each axis of the result, which one of `x` it is; None: in the opposite order.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.transpose([[1, 2]]).shape
        (2, 1)
    """
    return ops.transpose(x, axes or None)


def expand_dims(x: TensorLike, axis: AxisLike) -> Tensor:
    """Return the tensor with axes of size 1 more.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: Where they are in the result: an integer, or several.

    Raises:
        ValueError: An axis is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.expand_dims([1, 2], (0, 2)).shape
        (1, 2, 1)
    """
    tensor = ops.convert_to_tensor(x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = tensor.ndim + len(axes)
    for position in sorted(_axis(index, rank) for index in axes):
        tensor = ops.expand_dims(tensor, position)
    return tensor


def squeeze(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return the tensor without axes of size 1.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all of size 1.

    Raises:
        ValueError: An axis has another size.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.squeeze([[1, 2]]).shape
        (2,)
    """
    tensor = ops.convert_to_tensor(x)
    axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for dim in axes:
        if -tensor.ndim <= dim < tensor.ndim and tensor.shape[dim] != 1:
            raise ValueError(f"Cannot squeeze axis={dim}, because the dimension is not 1.")
    return ops.squeeze(tensor, axes or None)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Tensor:
    """Return tensors joined along an axis, in the dtype that they promote to.

    Args:
        xs: The tensors.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.concatenate([[1], [2.5]]).numpy()
        array([1. , 2.5], dtype=float32)
    """
    return ops.concat(promoted_tensors(*xs), axis)


def stack(x: Sequence[Any], axis: int = 0) -> Tensor:
    """Return tensors of one shape side by side, in the dtype that they promote to.

    Args:
        x: The tensors.
        axis: Where the new axis is.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.stack([[1], [2.5]]).shape
        (2, 1)
    """
    return ops.stack(promoted_tensors(*x), axis)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Return the tensor with two axes in each other's place.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis1: One of them.
        axis2: The other.

    Raises:
        ValueError: An axis is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.swapaxes([[1, 2]], 0, 1).shape
        (2, 1)
    """
    tensor = ops.convert_to_tensor(x)
    first, second = (_axis(number, tensor.ndim) for number in (axis1, axis2))
    return array_manipulation.swapaxes(tensor, first, second)


def ravel(x: TensorLike) -> Tensor:
    """Return the elements in a row.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ravel([[1, 2]]).shape
        (2,)
    """
    return ops.reshape(x, [-1])


def size(x: TensorLike) -> Tensor:
    """Return the number of elements, int32.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.size([[1, 2]]).numpy().item()
        2
    """
    return ops.size(x)


def ndim(x: TensorLike) -> int:
    """Return the number of axes, an integer.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.ndim([[1, 2]])
        2
    """
    return ops.convert_to_tensor(x).ndim


_OF_A_PART = 1 << 10  # Bytes that a placeholder of a graph takes, about.


def hsplit(x: TensorLike, indices_or_sections: int | Sequence[SupportsIndex]) -> list[Tensor]:
    """Return parts along the second axis, as `split` does.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many equal parts, or where each after the first one begins.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.keras.ops.hsplit([1, 2], 2))
        2
    """
    return array_manipulation.hsplit(ops.convert_to_tensor(x), indices_or_sections)


def vsplit(x: TensorLike, indices_or_sections: int | Sequence[SupportsIndex]) -> list[Tensor]:
    """Return parts along the first axis, as `split` does.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many equal parts, or where each after the first one begins.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.keras.ops.vsplit([[1], [2]], 2))
        2
    """
    return array_manipulation.vsplit(ops.convert_to_tensor(x), indices_or_sections)


def dsplit(x: TensorLike, indices_or_sections: int | Sequence[SupportsIndex]) -> list[Tensor]:
    """Return parts along the third axis, as `split` does.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many equal parts, or where each after the first one begins.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.keras.ops.dsplit([[[1, 2]]], 2))
        2
    """
    return array_manipulation.dsplit(ops.convert_to_tensor(x), indices_or_sections)


def hstack(xs: Sequence[Any]) -> Tensor:
    """Return values joined along the second axis, in the dtype that they promote to.

    Args:
        xs: The values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.hstack([[1, 2], [3, 4]]).shape
        (4,)
    """
    return array_manipulation.hstack(promoted_tensors(*xs))


def vstack(xs: Sequence[Any]) -> Tensor:
    """Return values joined along the first axis, in the dtype that they promote to.

    Args:
        xs: The values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.vstack([[1, 2], [3, 4]]).shape
        (2, 2)
    """
    return array_manipulation.vstack(promoted_tensors(*xs))


def dstack(xs: Sequence[Any]) -> Tensor:
    """Return values joined along the third axis, in the dtype that they promote to.

    Args:
        xs: The values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.dstack([[1, 2], [3, 4]]).shape
        (1, 2, 2)
    """
    return array_manipulation.dstack(promoted_tensors(*xs))


def split(
    x: TensorLike, indices_or_sections: int | Sequence[SupportsIndex], axis: int = 0
) -> list[Tensor]:
    """Return parts of a value along an axis.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many equal parts, or where each after the first one begins.
        axis: The axis.

    Raises:
        ValueError: There is no such axis, or a part begins before the one in front of it.
        InvalidArgumentError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.keras.ops.split([1, 2, 3], [1])]
        [[1], [2, 3]]
    """
    return array_manipulation.split(ops.convert_to_tensor(x), indices_or_sections, axis)


def array_split(x: TensorLike, indices_or_sections: int, axis: int = 0) -> list[Tensor]:
    """Return parts of a value along an axis, the first ones longer by 1 where they are not equal.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many parts.
        axis: The axis.

    Raises:
        TypeError: It is no integer.
        ValueError: It is not above 0.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.keras.ops.array_split([1, 2, 3], 2)]
        [[1, 2], [3]]
    """
    if not isinstance(indices_or_sections, int):
        raise TypeError(
            "Argument `indices_or_sections` must be of type `int`. Received: "
            f"indices_or_sections={indices_or_sections}"
        )
    if indices_or_sections <= 0:
        raise ValueError(
            "Argument `indices_or_sections` must be a positive integer. Received: "
            f"indices_or_sections={indices_or_sections}"
        )
    take_constant_room((indices_or_sections,), _OF_A_PART)
    tensor = ops.convert_to_tensor(x)
    least, longer = divmod(tensor.shape[axis], indices_or_sections)
    sizes = [least + (i < longer) for i in range(indices_or_sections)]
    return list(ops.split(tensor, sizes, axis))


def tile(x: TensorLike, repeats: ShapeLike) -> Tensor:
    """Return the elements several times along each axis.

    Args:
        x: A tensor or an array.
        repeats: How many times along the last axes, or along new ones in front.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tile([1, 2], 2).numpy()
        array([1, 2, 1, 2], dtype=int32)
    """
    return array_manipulation.tile(ops.convert_to_tensor(x), repeats)


def repeat(x: TensorLike, repeats: TensorLike, axis: int | None = None) -> Tensor:
    """Return each slice along an axis several times in a row.

    Args:
        x: A tensor, an array or a number.
        repeats: How many times; a number, or one for each slice.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.repeat([1, 2], 2).numpy()
        array([1, 1, 2, 2], dtype=int32)
    """
    return ops.repeat(ops.convert_to_tensor(x), repeats, axis)


def pad(
    x: TensorLike,
    pad_width: TensorLike,
    mode: str = "constant",
    constant_values: TensorLike | None = None,
) -> Tensor:
    """Return the elements with a margin.

    Args:
        x: A tensor or an array.
        pad_width: How wide it is before and behind, for each axis; one pair, or one number, for
            all.
        mode: "constant", "reflect" or "symmetric".
        constant_values: What a constant margin holds; None: 0.

    Raises:
        ValueError: The mode is another one, or there is a constant where the margin is none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.pad([1, 2], [[1, 0]]).numpy()
        array([0, 1, 2], dtype=int32)
    """
    tensor = ops.convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. Received: "
            f"mode={mode}"
        )
    pairs = _pairs(pad_width)
    pairs = pairs * tensor.ndim if len(pairs) == 1 else pairs
    value = 0 if constant_values is None else constant_values
    return array_manipulation.pad(tensor, pairs, mode, constant_values=value)


def _pairs(pad_width: Any) -> list[tuple[int, ...]]:
    if isinstance(pad_width, int):
        return [(pad_width, pad_width)]
    if all(isinstance(width, int) for width in pad_width):
        return [tuple(pad_width)]
    return [tuple(pair) for pair in pad_width]


def flip(x: TensorLike, axis: int | list[int] | tuple[int, ...] | None = None) -> Tensor:
    """Return the elements from the last one to the first one.

    Args:
        x: A tensor or an array.
        axis: Along which axis or axes; None: along all.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.flip([1, 2]).numpy()
        array([2, 1], dtype=int32)
    """
    tensor = ops.convert_to_tensor(x)
    if isinstance(axis, tuple | list):
        return ops.reverse(tensor, list(axis))
    return array_manipulation.flip(tensor, axis)


def flipud(x: TensorLike) -> Tensor:
    """Return the slices along the first axis from the last one to the first one.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.flipud([1, 2]).numpy()
        array([2, 1], dtype=int32)
    """
    return flip(x, 0)


def fliplr(x: TensorLike) -> Tensor:
    """Return the slices along the second axis from the last one to the first one.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.fliplr([[1, 2]]).numpy()
        array([[2, 1]], dtype=int32)
    """
    return flip(x, 1)


def roll(x: TensorLike, shift: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return the elements shifted along axes; the last ones are moved to the front.

    Args:
        x: A tensor or an array.
        shift: How many places.
        axis: Along which axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.roll([1, 2, 3], 1).numpy()
        array([3, 1, 2], dtype=int32)
    """
    return array_manipulation.roll(ops.convert_to_tensor(x), shift, axis)


def rot90(array: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Return the elements turned by right angles, from the first of two axes to the second one.

    Args:
        array: A tensor or an array of two axes or more.
        k: By how many.
        axes: The two axes.

    Raises:
        ValueError: There are fewer than two axes, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.rot90([[1, 2], [3, 4]]).numpy()
        array([[2, 4],
               [1, 3]], dtype=int32)
    """
    tensor = ops.convert_to_tensor(array)
    if tensor.ndim < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={tensor.ndim}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return array_manipulation.rot90(tensor, k, axes)


def moveaxis(x: TensorLike, source: AxisLike, destination: AxisLike) -> Tensor:
    """Return the elements with some axes in other places, and the others in their order.

    Args:
        x: A tensor or an array.
        source: One axis, or several.
        destination: Where they go.

    Raises:
        ValueError: These are not equally many.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.moveaxis(mr.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    return array_manipulation.moveaxis(ops.convert_to_tensor(x), source, destination)


def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """Return the elements broadcast to a shape.

    Args:
        x: A tensor, an array or a number.
        shape: The shape.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.broadcast_to([1, 2], (2, 2)).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return ops.broadcast_to(x, shape)


def append(x1: TensorLike, x2: TensorLike, axis: int | None = None) -> Tensor:
    """Return two values joined along an axis, in the dtype that both promote to.

    Args:
        x1: The first one.
        x2: The second one.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.append([1, 2], 3).numpy()
        array([1, 2, 3], dtype=int32)
    """
    first, second = promoted_tensors(x1, x2)
    return array_manipulation.append(first, second, axis)


explain_functions(__name__, all_but="expand_dims ndim ravel reshape size swapaxes")
