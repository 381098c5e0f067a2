"""Passes over data that are read block by block, one after another without end.

What a pass reads together is shuffled together, so each row comes once in each.
"""

from collections.abc import Iterator

from mirrored.data.arrays import Check, Rows
from mirrored.data.batches import Span
from mirrored.data.passes import Passes
from mirrored.data.stored import Stored, runs_of
from mirrored.ops import SeedGenerator


class PassesOfStored(Passes):
    """Batches of data that are read block by block, pass after pass without end.

    Args:
        data: The data.
        batch_size: The number of examples in a batch.
        shuffled: Whether each pass is in another order, by the global seed.
    """

    def __init__(self, data: Stored, batch_size: int, *, shuffled: bool) -> None:
        self._data, self._size, self._shuffled = data, batch_size, shuffled
        self.most_ahead = data.batches_at_once(batch_size)
        self.example = data.read([slice(0, min(batch_size, data.size))])
        self._seeds: SeedGenerator | None = None
        self._checks: list[Check] = []
        self._runs: Iterator[list[slice]] | None = None
        self._span: Span | None = None  # Read, and not given out yet.

    def checked(self, check: Check) -> "PassesOfStored":
        """Return the data as a function leaves them: what is read, when it is read."""
        check(self.example)
        self._checks.append(check)
        return self

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun."""
        return self._runs is not None

    def has_next(self) -> bool:
        """Return True: a pass follows another one."""
        if self._runs is None:
            blocks = self._data.blocks()
            if self._shuffled:
                self._seeds = self._seeds or SeedGenerator()
                blocks = [blocks[i] for i in self._seeds.permutation(len(blocks))]
            self._runs = runs_of(blocks, self.most_ahead * self._size)
        return True

    def read(self, most: int) -> Span | None:
        """Return the next batches, of those that were read together."""
        span = self._span or self._next()
        part = span.part(0, min(most, span.count))
        self._span = span.after(part.count) if part.count < span.count else None
        self.batches_read += part.count
        return part

    def close(self) -> None:
        """Leave the pass."""
        self._runs = self._span = None
        self.batches_read = 0

    def _next(self) -> Span:
        self.has_next()
        run = next(self._runs or iter(()), None)
        if run is None:
            self.close()
            return self._next()
        try:
            arrays = self._data.read(run)
            for check in self._checks:
                arrays = check(arrays)
        except ValueError as error:
            raise ValueError(
                f"Batch {self.batches_read} of a pass, or a later one: {error}"
            ) from error
        rows: Rows = slice(0, arrays.size)
        if self._seeds is not None:
            rows = self._seeds.permutation(arrays.size)
        return Span(arrays, rows, self._size)
