"""The random draws of a program's step, which change from run to run."""

import bisect
from collections.abc import Callable
from typing import Any

from mirrored.ops.random import NextDraw


class Draws:
    """The random draws of one step: taken on one thread, before the step begins."""

    def __init__(self) -> None:
        # Each with its number, by which they are ordered, and the place of what it draws.
        self._sources: list[tuple[int, int, NextDraw]] = []
        # Key and number of each draw of this step, in the order in which they were added.
        self.drawn: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._sources)

    def add(self, source: NextDraw, number: int) -> Callable[[], Any]:
        """Add a draw, and return what gives key and number of this step's.

        Args:
            source: Where it comes from.
            number: Draws are taken in the order of their numbers.
        """
        place, drawn = len(self._sources), self.drawn
        bisect.insort(self._sources, (number, place, source))
        drawn.append(None)
        return lambda: drawn[place]

    def mark(self) -> Callable[[], None]:
        """Return what takes back all that is taken from now on."""
        marks = [source.mark() for _, _, source in self._sources]

        def back() -> None:
            for mark in marks:
                mark()

        return back

    def take(self) -> None:
        """Take the next step's draws, in the order in which the function makes them."""
        run = object()
        for _, place, source in self._sources:
            self.drawn[place] = source(run)
