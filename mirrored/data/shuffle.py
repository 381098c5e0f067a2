"""The random order of a dataset: each element is picked from a buffer of those that come next.

Rows of arrays are never put into the buffer, only their numbers.
"""

import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from mirrored.data.draws import Draws, Turn
from mirrored.data.elements import Element, Elements
from mirrored.data.stages import Blocks, Derived, Slices, Stage

_DRAWS = 256
_OVER = object()


class Shuffled(Derived):
    """Elements in random order, each picked from a buffer of those that come next.

    Args:
        source: What is shuffled.
        buffer_size: How many elements the buffer holds.
        seed: The seed; None takes one from the global stream.
        anew: Whether each iterator, and each pass of `repeat`, has an order of its own.
    """

    draws: Draws

    def __init__(self, source: Stage, buffer_size: int, seed: int | None, anew: bool) -> None:
        super().__init__(source)
        self._buffer_size = buffer_size
        self._anew = anew
        self.draws = Draws(seed)

    def _generator(self, turn: Turn) -> np.random.Generator:
        return self.draws.stream(turn if self._anew else Turn()).generator()

    def open(self, turn: Turn) -> Elements:
        """Return an iterator in the turn's order."""
        with closing(self._source.open(turn.source())) as elements:
            yield from _picked(elements, self._buffer_size, self._generator(turn))

    def open_blocks(self, turn: Turn) -> Blocks | None:
        """Return what gathers rows, where these are rows of arrays."""
        source = self._source
        if not isinstance(source, Slices):
            return None
        size, generator = source.cardinality, self._generator(turn)
        if size <= self._buffer_size:
            whole = generator.permutation(size)  # What `_picked` does, without its steps.
            place = 0

            def read_whole(most: int) -> tuple[Element, int]:
                nonlocal place
                rows = whole[place : place + most]
                place += len(rows)
                return source.rows(rows), len(rows)

            return read_whole
        order = _picked(iter(range(size)), self._buffer_size, generator)

        def read(most: int) -> tuple[Element, int]:
            rows = np.fromiter(itertools.islice(order, most), np.int64)
            return source.rows(rows), len(rows)

        return read


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
