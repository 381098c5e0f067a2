"""The constants of a recorded function, some of which depend on the sizes of its inputs.

A recording computes what does not depend on inputs' values, such as the numbers of rows. Where two
recordings differ in that, what it is for any size is found from what it is for some.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored.export.sizes import Dim, Samples

Array = np.ndarray[Any, Any]
_FEW = 64  # Elements that are looked at one by one.


@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """A constant that is the same for all sizes.

    Attributes:
        value: Its value.
    """

    value: Array


@dataclass(frozen=True, eq=False, slots=True)
class Repeated(Constant):
    """One that is repeated along axes.

    Attributes:
        value: What is repeated, of size 1 along these axes.
        shape: The shape that it gets.
    """

    shape: tuple[Dim, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Counted(Constant):
    """Numbers at even distances, along one axis; all others have size 1.

    Attributes:
        value: The first number, and the distance.
        axis: The axis.
        axes: How many axes there are.
        size: How many numbers there are.
    """

    axis: int
    axes: int
    size: Dim


@dataclass(frozen=True, eq=False, slots=True)
class Band(Constant):
    """A matrix of two values: one around the diagonal, and another one elsewhere.

    Attributes:
        value: The two values.
        axes: How many axes there are; all but the last two have size 1.
        upper: How many columns right of the diagonal have the first value.
        lower: How many left of it have it; None: all.
        shape: The sizes of the last two.
    """

    axes: int
    upper: Dim
    lower: Dim
    shape: tuple[Dim, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Numbers(Constant):
    """A few whole numbers that depend on sizes, such as a shape.

    Attributes:
        value: Their values for some sizes, of their shape and dtype.
        numbers: The numbers in order.
    """

    numbers: tuple[Dim, ...]


def constant_of(arrays: Sequence[Array], samples: Samples) -> Constant | None:
    """Return a constant by what it was in each recording; None: nobody knows how it grows.

    Args:
        arrays: What it was.
        samples: The sizes of the recordings.
    """
    first = arrays[0]
    if all(_same(array, first) for array in arrays):
        return Constant(first)
    if len({(array.dtype, array.ndim) for array in arrays}) > 1:
        return None
    shape = tuple(
        samples.fitted(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)
    )
    if None in shape:
        return None
    for find in (_numbers, _repeated, _counted, _band):
        constant: Constant | None = find(arrays, shape, samples)
        if constant is not None:
            return constant
    return None


def _same(a: Array, b: Array) -> bool:
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


def _numbers(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    first = arrays[0]
    if any(array.shape != first.shape for array in arrays) or first.size > _FEW:
        return None
    if first.dtype == np.bool_ or any((array != np.round(array)).any() for array in arrays):
        return None
    columns = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    numbers = tuple(samples.fitted([int(value) for value in column]) for column in columns)
    return None if None in numbers else Numbers(first, numbers)


def _repeated(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    if not all(array.size for array in arrays):
        return None
    grows = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
    index = tuple(slice(0, 1) if axis in grows else slice(None) for axis in range(len(shape)))
    cut = arrays[0][index]
    whole = all(
        _same(data[index], cut) and _same(np.broadcast_to(cut, data.shape), data) for data in arrays
    )
    return Repeated(cut, shape) if whole else None


def _counted(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if len(axes) != 1 or arrays[0].dtype == np.bool_ or any(part.size < 2 for part in arrays):
        return None
    start, step = arrays[0].flat[0], arrays[0].flat[1] - arrays[0].flat[0]
    for array in arrays:
        counted = (start + np.arange(array.size) * step).astype(array.dtype)
        if not _same(counted, array.reshape(-1)):
            return None
    value = np.array([start, step], arrays[0].dtype)
    return Counted(value, axes[0], len(shape), shape[axes[0]])


def _band(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    if len(shape) < 2 or any(size != 1 for size in shape[:-2]) or not arrays[0].size:
        return None
    matrices = [part.reshape(part.shape[-2:]) for part in arrays]
    last, other = matrices[0][-1, 0], matrices[0][0, -1]
    whole = bool(last != other)  # What has no bound on the left has its value in that corner.
    kept = last if whole else matrices[0][0, 0]
    widths = [(_beside(matrix, kept), _beside(matrix.T, kept)) for matrix in matrices]
    for array, (upper, lower) in zip(matrices, widths, strict=True):
        rows, columns = np.ogrid[: array.shape[0], : array.shape[1]]
        inside = columns - rows <= upper
        inside &= whole | (rows - columns <= lower)
        if not _same(np.asarray(np.where(inside, kept, other), array.dtype), array):
            return None
    right, left = (samples.fitted(sizes) for sizes in zip(*widths, strict=True))
    if right is None or (left is None and not whole):
        return None
    values = np.array([kept, other], arrays[0].dtype)
    return Band(values, len(shape), right, None if whole else left, shape[-2:])


def _beside(matrix: Array, value: Any) -> int:
    """Return how many places right of the diagonal a value ends, in the first row or before."""
    count = int((matrix[0] == value).sum())
    return count - 1 if count else -int((matrix[:, 0] != value).sum())
