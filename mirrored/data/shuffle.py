"""The random order of a dataset: each element is picked from a buffer of those that come next.

Rows of arrays are never put into the buffer, only their numbers.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from mirrored.data.adapters import Rows
from mirrored.data.draws import Draws, Turn
from mirrored.data.elements import Elements
from mirrored.data.stages import Derived, Slices, Stage

_DRAWS = 256
_OVER = object()


class Shuffled(Derived):
    """Elements in random order, each picked from a buffer of those that come next.

    Args:
        source: What is shuffled.
        buffer_size: How many elements the buffer holds.
        draws: What the order is drawn from.
        anew: Whether each iterator, and each pass of `repeat`, has an order of its own.
    """

    draws: Draws

    def __init__(self, source: Stage, buffer_size: int, draws: Draws, anew: bool = True) -> None:
        super().__init__(source)
        self._buffer_size = buffer_size
        self._anew = anew
        self.draws = draws

    @property
    def slices(self) -> Slices | None:
        """The arrays, where their rows are shuffled."""
        return self._source if isinstance(self._source, Slices) else None

    def _generator(self, turn: Turn) -> np.random.Generator:
        return self.draws.stream(turn if self._anew else Turn()).generator()

    def open(self, turn: Turn) -> Elements:
        """Return an iterator in the turn's order."""
        with closing(self._source.open(turn.source())) as elements:
            yield from _picked(elements, self._buffer_size, self._generator(turn))

    def open_rows(self, turn: Turn) -> Callable[[int], Rows]:
        """Return what gives the numbers of the rows that are picked."""
        size = self.cardinality
        if size <= self._buffer_size:
            # What `_picked` does, without its steps.
            whole = self.draws.permutation(turn if self._anew else Turn(), size)
            place = 0

            def read_whole(most: int) -> Rows:
                nonlocal place
                begin, place = place, min(place + most, size)
                return whole[begin:place]

            return read_whole
        order = _picked(iter(range(size)), self._buffer_size, self._generator(turn))
        return lambda most: np.fromiter(itertools.islice(order, most), np.int64)


def _picked(
    items: Iterator[Any], buffer_size: int, generator: np.random.Generator
) -> Iterator[Any]:
    """Yield items in random order: one of a full buffer each time, whose place the next takes."""
    buffer = list(itertools.islice(items, buffer_size))
    ahead = list(itertools.islice(items, 1))
    items = itertools.chain(ahead, items)
    while ahead:
        # Many numbers at once: drawing each by itself would take most of the time.
        for place in generator.integers(len(buffer), size=_DRAWS).tolist():
            item = next(items, _OVER)
            if item is _OVER:
                break
            yield buffer[place]
            buffer[place] = item
        else:
            continue
        break
    for place in generator.permutation(len(buffer)).tolist():
        yield buffer[place]
