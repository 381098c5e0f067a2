"""Constants of a recorded function, of which some grow with the sizes of its inputs.

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
class Triangle(Constant):
    """A matrix of two values: one up to a diagonal, and another one above it.

    Attributes:
        value: The two values.
        axes: How many axes there are; all but the last two have size 1.
        diagonal: How many columns after its row the last column of the first value comes.
        shape: The sizes of the last two.
    """

    axes: int
    diagonal: Dim
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
    if all(_same(each, first) for each in arrays):
        return Constant(first)
    if len({(each.dtype, each.ndim) for each in arrays}) > 1:
        return None
    shape = tuple(
        samples.fitted(sizes) for sizes in zip(*(each.shape for each in arrays), strict=True)
    )
    if None in shape:
        return None
    for find in (_numbers, _repeated, _counted, _triangle):
        found: Constant | None = find(arrays, shape, samples)
        if found is not None:
            return found
    return None


def _same(one: Array, other: Array) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()


def _numbers(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    first = arrays[0]
    if any(each.shape != first.shape for each in arrays) or first.size > _FEW:
        return None
    if first.dtype == np.bool_ or any((each != np.round(each)).any() for each in arrays):
        return None
    columns = zip(*(each.ravel().tolist() for each in arrays), strict=True)
    numbers = tuple(samples.fitted([int(each) for each in column]) for column in columns)
    return None if None in numbers else Numbers(first, numbers)


def _repeated(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    if not all(each.size for each in arrays):
        return None
    grows = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
    index = tuple(slice(0, 1) if axis in grows else slice(None) for axis in range(len(shape)))
    one = arrays[0][index]
    whole = all(
        _same(each[index], one) and _same(np.broadcast_to(one, each.shape), each) for each in arrays
    )
    return Repeated(one, shape) if whole else None


def _counted(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    if len(axes) != 1 or arrays[0].dtype == np.bool_ or any(each.size < 2 for each in arrays):
        return None
    start, step = arrays[0].flat[0], arrays[0].flat[1] - arrays[0].flat[0]
    for each in arrays:
        counted = (start + np.arange(each.size) * step).astype(each.dtype)
        if not _same(counted, each.reshape(-1)):
            return None
    value = np.array([start, step], arrays[0].dtype)
    return Counted(value, axes[0], len(shape), shape[axes[0]])


def _triangle(arrays: Sequence[Array], shape: tuple[Dim, ...], samples: Samples) -> Constant | None:
    if len(shape) < 2 or any(size != 1 for size in shape[:-2]) or not arrays[0].size:
        return None
    matrices = [each.reshape(each.shape[-2:]) for each in arrays]
    kept, other = matrices[0][-1, 0], matrices[0][0, -1]
    diagonals = []
    for each in matrices:
        first = int((each[0] == kept).sum())
        diagonals.append(first - 1 if first else -int((each[:, 0] != kept).sum()))
    for each, diagonal in zip(matrices, diagonals, strict=True):
        below = np.tri(each.shape[0], each.shape[1], diagonal, dtype=np.bool_)
        if not _same(np.asarray(np.where(below, kept, other), each.dtype), each):
            return None
    fitted = samples.fitted(diagonals)
    values = np.array([kept, other], arrays[0].dtype)
    return None if fitted is None else Triangle(values, len(shape), fitted, shape[-2:])
