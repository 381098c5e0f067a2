"""`keras.ops` that split, repeat, flip and join tensors without computing."""

import math
from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.numpy_functions import array_manipulation as manipulation
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room

_OF_A_PART = 1 << 10  # Bytes that a placeholder of a graph takes, about.


def _define_split(name: str, axis: str, example: str) -> Any:
    function = getattr(manipulation, name)

    def f(x: Any, indices_or_sections: Any) -> list[Tensor]:
        parts: list[Tensor] = function(ops.convert_to_tensor(x), indices_or_sections)
        return parts

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return parts along the {axis} axis, as `split` does.

    Args:
        x: A tensor or an array.
        indices_or_sections: How many equal parts, or where each after the first one begins.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.keras.ops.{name}({example}, 2))
        2
    """
    return explained(f)


hsplit = _define_split("hsplit", "second", "[1, 2]")
vsplit = _define_split("vsplit", "first", "[[1], [2]]")
dsplit = _define_split("dsplit", "third", "[[[1, 2]]]")


def _define_joined(name: str, axis: str, example: str) -> Any:
    function = getattr(manipulation, name)

    def f(xs: Sequence[Any]) -> Tensor:
        joined: Tensor = function(_common(*_tensors(*xs)))
        return joined

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return values joined along the {axis} axis, in the dtype that they promote to.

    Args:
        xs: The values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.{name}([[1, 2], [3, 4]]).shape
        {example}
    """
    return explained(f)


hstack = _define_joined("hstack", "second", "(4,)")
vstack = _define_joined("vstack", "first", "(2, 2)")
dstack = _define_joined("dstack", "third", "(1, 2, 2)")


@explained
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
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
    return manipulation.split(ops.convert_to_tensor(x), indices_or_sections, axis)


@explained
def array_split(x: Any, indices_or_sections: int, axis: int = 0) -> list[Tensor]:
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


@explained
def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis.

    Args:
        x: A tensor or an array.
        num: How many there are; None: it is known.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.keras.ops.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    return list(ops.unstack(x, num=num, axis=axis))


@explained
def tile(x: Any, repeats: Any) -> Tensor:
    """Return the elements several times along each axis.

    Args:
        x: A tensor or an array.
        repeats: How many times along the last axes, or along new ones in front.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tile([1, 2], 2).numpy()
        array([1, 2, 1, 2], dtype=int32)
    """
    return manipulation.tile(ops.convert_to_tensor(x), repeats)


@explained
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
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


@explained
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
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
    return manipulation.pad(tensor, pairs, mode, constant_values=value)


def _pairs(pad_width: Any) -> list[tuple[int, ...]]:
    if isinstance(pad_width, int):
        return [(pad_width, pad_width)]
    if all(isinstance(width, int) for width in pad_width):
        return [tuple(pad_width)]
    return [tuple(pair) for pair in pad_width]


@explained
def flip(x: Any, axis: Any = None) -> Tensor:
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
    return manipulation.flip(tensor, axis)


@explained
def flipud(x: Any) -> Tensor:
    """Return the slices along the first axis from the last one to the first one.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.flipud([1, 2]).numpy()
        array([2, 1], dtype=int32)
    """
    return flip(x, 0)


@explained
def fliplr(x: Any) -> Tensor:
    """Return the slices along the second axis from the last one to the first one.

    Args:
        x: A tensor or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.fliplr([[1, 2]]).numpy()
        array([[2, 1]], dtype=int32)
    """
    return flip(x, 1)


@explained
def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
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
    return manipulation.roll(ops.convert_to_tensor(x), shift, axis)


@explained
def rot90(array: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
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
    return manipulation.rot90(tensor, k, axes)


@explained
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
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
    return manipulation.moveaxis(ops.convert_to_tensor(x), source, destination)


@explained
def broadcast_to(x: Any, shape: Any) -> Tensor:
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


@explained
def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
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
    first, second = _common(*_tensors(x1, x2))
    return manipulation.append(first, second, axis)


@explained
def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Return stretches of the last axis, each a step behind the one before.

    Args:
        x: A tensor or an array.
        sequence_length: How long a stretch is.
        sequence_stride: How far one begins behind the one before.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.extract_sequences([1.0, 2.0, 3.0], 2, 1).numpy()
        array([[1., 2.],
               [2., 3.]], dtype=float32)
    """
    tensor = ops.convert_to_tensor(x)
    count = math.floor((tensor.shape[-1] - sequence_length) / sequence_stride) + 1
    starts = ops.reshape(ops.range(max(count, 0)) * sequence_stride, (-1, 1))
    return ops.gather(tensor, starts + ops.range(sequence_length), axis=-1)
