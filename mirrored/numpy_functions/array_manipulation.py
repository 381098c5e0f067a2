"""NumPy's functions that reshape, move, join, repeat and split tensors.

How often is known on the host: it is refused in a recorded function where it is not.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, ShapeLike, TensorLike
from mirrored.numpy_functions.array_conversion import array, axis_of, promoted
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import int64

_ROWS_FIRST = ("C", "A", "K")


def shape(a: TensorLike) -> Any:
    """Return a value's shape.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.shape([[1, 2]])
        (1, 2)
    """
    return array(a).shape


def ndim(a: TensorLike) -> int:
    """Return how many axes a value has.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ndim([[1, 2]])
        2
    """
    return array(a).ndim


def size(x: TensorLike, axis: int | None = None) -> int:
    """Return how many elements a value has.

    Args:
        x: The value.
        axis: None alone.

    Raises:
        NotImplementedError: An axis is given.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.size([[1, 2]])
        2
    """
    if axis is not None:
        raise NotImplementedError("`size` takes no axis. Use the shape: `x.shape[axis]`.")
    return array(x).size


def isscalar(num: Any) -> bool:
    """Return whether a value has no axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.isscalar(2)
        True
    """
    return ndim(num) == 0


def reshape(a: TensorLike, newshape: ShapeLike, order: str = "C") -> Tensor:
    """Return the elements in another shape.

    Args:
        a: The elements.
        newshape: The shape; -1 for one size that follows from the others.
        order: "C", by which the last axis is the fastest, or "F", by which the first one is.

    Raises:
        ValueError: The order is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.reshape([1, 2, 3, 4], (2, 2), order="F").numpy()
        array([[1, 3],
               [2, 4]])
    """
    if order not in ("C", "F"):
        raise ValueError(f"Unsupported order argument {order}")
    tensor = array(a)
    sizes: Any = [newshape] if isinstance(newshape, int) else newshape
    if order == "C":
        return ops.reshape(tensor, sizes)
    return ops.transpose(ops.reshape(ops.transpose(tensor), sizes[::-1]))


def ravel(a: TensorLike) -> Tensor:
    """Return the elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.ravel([[1], [2]]).numpy()
        array([1, 2])
    """
    return ops.reshape(array(a), [-1])


def flatten(a: TensorLike, order: str = "C") -> Tensor:
    """Return the elements in a row.

    Args:
        a: The elements.
        order: "C", "A" or "K": the last axis is the fastest; "F": the first one is.

    Raises:
        ValueError: The order is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.flatten([[1, 2], [3, 4]], "F").numpy()
        array([1, 3, 2, 4])
    """
    if order not in (*_ROWS_FIRST, "F"):
        raise ValueError("order can only be C, A, K (all row major) or F (column major).")
    return ravel(ops.transpose(array(a)) if order == "F" else a)


def expand_dims(a: TensorLike, axis: int) -> Tensor:
    """Return the elements with one more axis, of size 1.

    Args:
        a: The elements.
        axis: Where it is.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.expand_dims([1, 2], 0).shape
        (1, 2)
    """
    return ops.expand_dims(array(a), axis)


def squeeze(a: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return the elements without axes of size 1.

    Args:
        a: The elements.
        axis: Which axes; None: all of them.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.squeeze([[1, 2]]).shape
        (2,)
    """
    return ops.squeeze(array(a), axis)


def transpose(a: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Return the elements with their axes in another order.

    Args:
        a: The elements.
        axes: The order; None: from the last to the first.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.transpose([[1, 2]]).numpy()
        array([[1],
               [2]])
    """
    return ops.transpose(array(a), axes)


def swapaxes(a: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Return the elements with two axes in each other's place.

    Args:
        a: The elements.
        axis1: One of the axes.
        axis2: The other one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.swapaxes([[1, 2]], 0, -1).shape
        (2, 1)
    """
    tensor = array(a)
    order = list(range(tensor.ndim))
    first, other = axis_of(axis1, tensor.ndim), axis_of(axis2, tensor.ndim)
    order[first], order[other] = other, first
    return ops.transpose(tensor, order)


def moveaxis(a: TensorLike, source: AxisLike, destination: AxisLike) -> Tensor:
    """Return the elements with some axes in other places, and the others in their order.

    Args:
        a: The elements.
        source: One axis, or several.
        destination: Where they go.

    Raises:
        ValueError: These are not equally many.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.moveaxis(mr.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    tensor = array(a)
    pair = [[axes] if isinstance(axes, int) else list(axes) for axes in (source, destination)]
    if len(pair[0]) != len(pair[1]):
        raise ValueError("The lengths of source and destination must equal")
    moved, to = ([axis_of(number, tensor.ndim) for number in axes] for axes in pair)
    order = [axis for axis in range(tensor.ndim) if axis not in moved]
    for place, axis in sorted(zip(to, moved, strict=True)):
        order.insert(place, axis)
    return ops.transpose(tensor, order)


def broadcast_to(array: TensorLike, shape: ShapeLike) -> Tensor:
    """Return the elements broadcast to a shape.

    Args:
        array: The elements.
        shape: The shape.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.broadcast_to([1, 2], (2, 2)).numpy()
        array([[1, 2],
               [1, 2]])
    """
    return ops.broadcast_to(_array(array), shape)


_array = array  # Whose name is an argument's in some functions.


def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return values broadcast to the shape that all of them have together.

    Args:
        *args: The values.
        **kwargs: `subok`, False alone.

    Raises:
        ValueError: Something else is given by name.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.broadcast_arrays([1, 2], [[3], [4]])[0].shape
        (2, 2)
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError(f"subok=True and other arguments are not supported: {sorted(kwargs)}")
    tensors = [array(arg) for arg in args]
    together = np.broadcast_shapes(*(tuple(tensor.shape) for tensor in tensors))
    return [ops.broadcast_to(tensor, together) for tensor in tensors]


def stack(arrays: Iterable[TensorLike], axis: int = 0) -> Tensor:
    """Return values of one shape side by side along a new axis.

    Args:
        arrays: The values; of a tensor those along its first axis.
        axis: Where the new axis is.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.stack([[1, 2], [3.5, 4]]).numpy()
        array([[1. , 2. ],
               [3.5, 4. ]])
    """
    values: Any = arrays
    if is_tensor(values):
        return values if axis == 0 else swapaxes(values, 0, axis)
    return ops.stack(promoted(*values), axis)


def concatenate(arys: Sequence[TensorLike] | TensorLike, axis: int = 0) -> Tensor:
    """Return values joined along an axis.

    Args:
        arys: The values.
        axis: The axis.

    Raises:
        ValueError: There are none.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.concatenate([[1, 2], [3.5]]).numpy()
        array([1. , 2. , 3.5])
    """
    parts = arys if isinstance(arys, list | tuple) else [arys]
    if not parts:
        raise ValueError(
            f"Need at least one array to concatenate. Received empty input: arys={arys}"
        )
    return ops.concat(promoted(*parts), axis)


def append(arr: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """Return two values joined along an axis.

    Args:
        arr: The first one.
        values: The second one.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.append([1, 2], 3).numpy()
        array([1, 2, 3])
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


def _at_least(count: int, shaped: Callable[[list[int]], list[int]], arys: Sequence[Any]) -> Any:
    """Return values with axes added by a function of the shape, where they have fewer."""
    tensors = [array(value) for value in arys]
    results = [
        ops.reshape(tensor, shaped(list(tensor.shape))) if tensor.ndim < count else tensor
        for tensor in tensors
    ]
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys: Any) -> Any:
    """Return each value with one axis or more.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.atleast_1d(2).shape
        (1,)
    """
    return _at_least(1, lambda sizes: [1], arys)


def atleast_2d(*arys: Any) -> Any:
    """Return each value with two axes or more; those that lack are in front.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.atleast_2d([1, 2]).shape
        (1, 2)
    """
    return _at_least(2, lambda sizes: [1] * (2 - len(sizes)) + sizes, arys)


def atleast_3d(*arys: Any) -> Any:
    """Return each value with three axes or more; a vector's is the second of them.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.atleast_3d([1, 2]).shape
        (1, 2, 1)
    """
    return _at_least(3, lambda sizes: [[1, 1, 1], [1, *sizes, 1], [*sizes, 1]][len(sizes)], arys)


def hstack(tup: Iterable[TensorLike]) -> Tensor:
    """Return values joined along their second axis, and vectors along their only one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.hstack([[1, 2], [3]]).numpy()
        array([1, 2, 3])
    """
    parts = promoted(*(atleast_1d(part) for part in tup))
    return ops.concat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tup: Iterable[TensorLike]) -> Tensor:
    """Return values joined along their first axis, and vectors as rows.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.vstack([[1, 2], [3, 4]]).shape
        (2, 2)
    """
    return ops.concat(promoted(*(atleast_2d(part) for part in tup)), 0)


def dstack(tup: Iterable[TensorLike]) -> Tensor:
    """Return values joined along their third axis.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.dstack([[1, 2], [3, 4]]).shape
        (1, 2, 2)
    """
    return ops.concat(promoted(*(atleast_3d(part) for part in tup)), 2)


def tile(a: TensorLike, reps: ShapeLike) -> Tensor:
    """Return the elements several times along each axis.

    Args:
        a: The elements.
        reps: How many times along the last axes, or along new ones in front.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.tile([1, 2], 2).numpy()
        array([1, 2, 1, 2])
    """
    tensor = array(a)
    times = [int(count) for count in ravel(array(reps, int64)).numpy()]
    rank = max(tensor.ndim, len(times))
    sizes = [1] * (rank - tensor.ndim) + list(tensor.shape)
    return ops.tile(ops.reshape(tensor, sizes), [1] * (rank - len(times)) + times)


def repeat(a: TensorLike, repeats: TensorLike, axis: int | None = None) -> Tensor:
    """Return each slice along an axis several times in a row.

    Args:
        a: The elements.
        repeats: How many times; a number, or one for each slice.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.repeat([1, 2], 2).numpy()
        array([1, 1, 2, 2])
    """
    return ops.repeat(array(a), array(repeats), axis)


def pad(array: TensorLike, pad_width: TensorLike, mode: str, **kwargs: Any) -> Tensor:
    """Return the elements with a margin.

    Args:
        array: The elements.
        pad_width: How wide it is before and behind, for each axis.
        mode: "constant", "reflect" or "symmetric".
        **kwargs: `constant_values`, what the margin holds.

    Raises:
        ValueError: The mode is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.pad([1, 2], [[1, 0]], "constant").numpy()
        array([0, 1, 2])
    """
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError(f"Unsupported padding mode: {mode}")
    value = kwargs.get("constant_values", 0)
    widths: Any = _array(pad_width, int64)
    if not is_tensor(pad_width):  # Without an operation for each row.
        widths = widths.numpy()
    return ops.pad(_array(array), widths, mode.upper(), constant_values=value)


def flip(m: TensorLike, axis: int | None = None) -> Tensor:
    """Return the elements from the last one to the first one.

    Args:
        m: The elements.
        axis: Along which axis; None: along all.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.flip([1, 2]).numpy()
        array([2, 1])
    """
    tensor = array(m)
    return ops.reverse(tensor, list(range(tensor.ndim)) if axis is None else [axis])


def flipud(m: TensorLike) -> Tensor:
    """Return the slices along the first axis from the last one to the first one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.flipud([1, 2]).numpy()
        array([2, 1])
    """
    return flip(m, 0)


def fliplr(m: TensorLike) -> Tensor:
    """Return the slices along the second axis from the last one to the first one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.fliplr([[1, 2]]).numpy()
        array([[2, 1]])
    """
    return flip(m, 1)


def roll(a: TensorLike, shift: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """Return the elements shifted along axes; the last ones are moved to the front.

    Args:
        a: The elements.
        shift: How many places.
        axis: Along which axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.roll([1, 2, 3], 1).numpy()
        array([3, 1, 2])
    """
    tensor = array(a)
    if axis is not None:
        return ops.roll(tensor, shift, axis)
    return ops.reshape(ops.roll(ravel(tensor), shift, 0), tensor.shape)


def rot90(m: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Return the elements turned by right angles, from the first of two axes to the second one.

    Args:
        m: The elements.
        k: By how many.
        axes: The two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.rot90([[1, 2], [3, 4]]).numpy()
        array([[2, 4],
               [1, 3]])
    """
    tensor = array(m)
    first, other = (axis_of(axis, tensor.ndim) for axis in axes)
    turns = k % 4
    if turns in (0, 2):
        return ops.reverse(tensor, [first, other]) if turns else tensor
    return ops.reverse(swapaxes(tensor, first, other), [first if turns == 1 else other])


def split(
    ary: TensorLike, indices_or_sections: int | Sequence[SupportsIndex], axis: int = 0
) -> list[Tensor]:
    """Return parts of a value along an axis.

    Args:
        ary: The value.
        indices_or_sections: How many equal parts, or where each part after the first one begins.
        axis: The axis.

    Raises:
        ValueError: There is no such axis, or a part begins before the one in front of it.
        InvalidArgumentError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().tolist() for each in mr.experimental.numpy.split([1, 2, 3], [1])]
        [[1], [2, 3]]
    """
    tensor = array(ary)
    if isinstance(indices_or_sections, int):
        return list(ops.split(tensor, indices_or_sections, axis))
    if axis >= tensor.ndim:
        raise ValueError(f"axis {axis} is out of bound for shape {tensor.shape}")
    left, before = tensor.shape[axis], 0
    sizes: list[int] = []
    for i, begin in enumerate(int(index) for index in indices_or_sections):
        if begin < before:
            raise ValueError(
                f"The {i}-th boundary {begin} is smaller than the previous boundary {before}"
            )
        sizes.append(min(begin - before, left))
        left, before = left - sizes[-1], begin
    return list(ops.split(tensor, [*sizes, left], axis))


def _split_along(ary: Any, parts: Any, axis: int) -> list[Tensor]:
    tensor = array(ary)
    axis = 0 if axis == 1 and tensor.ndim == 1 else axis
    if isinstance(parts, int) and tensor.shape[axis] % parts:
        raise ValueError("array split does not result in an equal division")
    return split(tensor, parts, axis)


def vsplit(
    ary: TensorLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]
) -> list[Tensor]:
    """Return parts along the first axis, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.vsplit([[1], [2]], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 0)


def hsplit(
    ary: TensorLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]
) -> list[Tensor]:
    """Return parts along the second axis, of a vector along its only one, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.hsplit([1, 2], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 1)


def dsplit(
    ary: TensorLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex]
) -> list[Tensor]:
    """Return parts along the third axis, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.dsplit([[[1, 2]]], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 2)


explain_functions(__name__)
