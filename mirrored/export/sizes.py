"""Numbers that depend on the sizes of inputs, inferred from several sizes.

A number that is a sum of products of sizes, such as twice the batch and one, is written as that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

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
        """Return what it is for some sizes."""
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
        """Return what it is for some sizes."""
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
        """Return a number by what it was in each recording.

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
