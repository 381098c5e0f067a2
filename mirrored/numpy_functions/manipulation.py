"""NumPy's functions that repeat, flip, split and sort elements.

How often is known on the host: it is refused in a recorded function where it is not.
"""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.numpy_functions.promotion import array, axis_of
from mirrored.numpy_functions.shapes import ravel
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import int64


def tile(a: Any, reps: Any) -> Tensor:
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


@explained
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
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


def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Tensor:
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


_array = array  # Whose name is an argument's there.


@explained
def flip(m: Any, axis: int | None = None) -> Tensor:
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


def flipud(m: Any) -> Tensor:
    """Return the slices along the first axis from the last one to the first one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.flipud([1, 2]).numpy()
        array([2, 1])
    """
    return flip(m, 0)


def fliplr(m: Any) -> Tensor:
    """Return the slices along the second axis from the last one to the first one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.fliplr([[1, 2]]).numpy()
        array([[2, 1]])
    """
    return flip(m, 1)


@explained
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
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


@explained
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
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
    order = list(range(tensor.ndim))
    order[first], order[other] = other, first
    if turns == 1:
        return ops.transpose(ops.reverse(tensor, [other]), order)
    return ops.reverse(ops.transpose(tensor, order), [other])


@explained
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
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


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the first axis, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.vsplit([[1], [2]], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the second axis, of a vector along its only one, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.hsplit([1, 2], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the third axis, as `split` does.

    Raises:
        ValueError: Parts would not be equal.

    Example:
        >>> import mirrored as mr
        >>> len(mr.experimental.numpy.dsplit([[[1, 2]]], 2))
        2
    """
    return _split_along(ary, indices_or_sections, 2)


@explained
def sort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Return the elements in order along an axis.

    Args:
        a: The elements.
        axis: The axis; None: that of all elements in a row.
        kind: "quicksort".
        order: None alone.

    Raises:
        ValueError: `kind` or `order` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.sort([3, 1, 2]).numpy()
        array([1, 2, 3])
    """
    _check_order(kind, order, ("quicksort",))
    return ops.sort(ravel(a), 0) if axis is None else ops.sort(array(a), axis)


@explained
def argsort(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
    """Return the indices of the elements in order along an axis.

    Args:
        a: The elements.
        axis: The axis; None: that of all elements in a row.
        kind: "quicksort" or "stable"; equal elements keep their order by both.
        order: None alone.

    Raises:
        ValueError: `kind` or `order` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.argsort([3, 1, 2]).numpy()
        array([1, 2, 0])
    """
    _check_order(kind, order, ("quicksort", "stable"))
    tensor = array(a)
    if not tensor.ndim:
        return ops.zeros((1,), int64)
    if axis is None:
        tensor, axis = ravel(tensor), 0
    return ops.cast(ops.argsort(tensor, axis), int64)


def _check_order(kind: str, order: Any, kinds: tuple[str, ...]) -> None:
    if kind not in kinds:
        raise ValueError(
            f"Invalid value for argument `kind`. Only {', '.join(kinds)} are supported. "
            f"Received: kind={kind}"
        )
    if order is not None:
        raise ValueError("The `order` argument is not supported. Pass order=None")
