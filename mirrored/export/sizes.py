"""Sizes and constants that depend on the sizes of inputs, inferred from several recordings.

A number that is a sum of products of sizes, such as twice the batch and one, is written as that. So
is a constant that is repeated, counts, or is a band along such sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

_LARGEST_POWER = 3


@dataclass(frozen=True, slots=True)
class Term:
    """A product of sizes.

    Attributes:
        factor: A number that it is multiplied by.
        powers: The power of each size, in their order.
    """

    factor: int
    powers: tuple[int, ...]

    def value(self, sizes: Sequence[int]) -> int:
        """Return the number for given sizes."""
        powers = [int(n**e) for n, e in zip(sizes, self.powers, strict=True)]
        return self.factor * math.prod(powers)


@dataclass(frozen=True, slots=True)
class Size:
    """A number that depends on sizes: a sum of products of them, divided by a number.

    Attributes:
        terms: The products.
        divisor: What divides the sum, without a rest.
    """

    terms: tuple[Term, ...]
    divisor: int = 1

    def value(self, sizes: Sequence[int]) -> int:
        """Return the number for given sizes."""
        return sum(term.value(sizes) for term in self.terms) // self.divisor

    @property
    def alone(self) -> int | None:
        """The place of the size that it is; None where it is something else."""
        if len(self.terms) != 1 or self.divisor != 1 or self.terms[0].factor != 1:
            return None
        powers = self.terms[0].powers
        return powers.index(1) if sum(powers) == 1 else None

    def plus(self, number: int) -> "Size":
        """Return the sum with a number."""
        powers = (0,) * len(self.terms[0].powers)
        return Size((*self.terms, Term(number * self.divisor, powers)), self.divisor)


Dim = int | Size | None  # None: it is no such sum.


@dataclass(frozen=True, slots=True)
class Samples:
    """The sizes that a function is recorded for.

    Attributes:
        names: What each size is called.
        runs: The sizes of each recording: the first ones, others for one size at a time, twice
            each, and others for all.
        exact: Whether quotients may be taken for such numbers: where the function takes no sizes
            that leave a rest.
    """

    names: tuple[str, ...]
    runs: tuple[tuple[int, ...], ...]
    exact: bool

    @classmethod
    def of(cls, names: Sequence[str], numbers: Sequence[int], *, exact: bool) -> "Samples":
        """Return samples of as many sizes as there are names.

        Args:
            names: The names.
            numbers: Four numbers. The sizes of one recording are multiples of the first; all are
                different in it, so that no two sizes are taken for the same one.
            exact: As above.
        """
        if not names:
            return cls((), ((),), exact)
        first, second, third, last = numbers
        base = [first * (place + 1) for place in range(len(names))]
        runs = [tuple(base)]
        for place in range(len(names)):
            for number in (second, third):
                runs.append((*base[:place], number * (place + 1), *base[place + 1 :]))
        runs.append(tuple(last * (place + 2) for place in range(len(names))))
        return cls(tuple(names), tuple(runs), exact)

    def fitted(self, values: Sequence[int]) -> Dim:
        """Return the formula of a number from its value in each recording.

        Args:
            values: What it was.
        """
        if len({*values}) == 1:
            return values[0]
        for size in (self._product(values), self._sum(values)):
            if size is not None and [size.value(run) for run in self.runs] == [*values]:
                return size
        return None

    def _changes(self, values: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return for each size what it is in the first recording and the next, and the value."""
        first = self.runs[0]
        return [
            (first[place], self.runs[1 + 2 * place][place], values[1 + 2 * place])
            for place in range(len(self.names))
        ]

    def _product(self, values: Sequence[int]) -> Size | None:
        powers = []
        for before, after, value in self._changes(values):
            rises = [Fraction(after, before) ** power for power in range(_LARGEST_POWER + 1)]
            rise = Fraction(value, values[0]) if values[0] else None
            if rise not in rises:
                return None
            powers.append(rises.index(rise))
        whole = math.prod(n**e for n, e in zip(self.runs[0], powers, strict=True))
        factor = Fraction(values[0], whole)
        if factor.denominator != 1 and not self.exact:
            return None
        return Size((Term(factor.numerator, tuple(powers)),), factor.denominator)

    def _sum(self, values: Sequence[int]) -> Size | None:
        count, rest, terms = len(self.names), values[0], []
        for place, (before, after, value) in enumerate(self._changes(values)):
            factor = Fraction(value - values[0], after - before)
            if factor.denominator != 1:
                return None
            if factor:
                powers = tuple(int(index == place) for index in range(count))
                terms.append(Term(factor.numerator, powers))
                rest -= factor.numerator * before
        return Size((*terms, *([Term(rest, (0,) * count)] if rest else [])))


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
    """Return the formula of a constant from its value in each recording; None: unknown.

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
