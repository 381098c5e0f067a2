"""Passes over batches to which every worker adds rows of its own, until no worker has any.

Before each batch the workers tell each other how many examples they have for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Check, count_of
from mirrored.data.batches import Span
from mirrored.data.passes import Passes

# From what this process says to what each of them says, in order; all of them call it.
Gather = Callable[[Any, str], list[Any]]


class PassesOfWorkers(Passes):
    """Batches that all processes have together, each in the order of the processes.

    Args:
        own: The batches of this process.
        share: From how many examples this process has to how many each of its replicas gets.
        gather: Asks all processes.
    """

    most_ahead = 1  # They meet for a batch, run its step, and meet again.

    def __init__(self, own: Passes, share: Callable[[int], Sequence[int]], gather: Gather) -> None:
        self._own, self._share, self._gather = own, share, gather
        self.example = self._latest = own.example
        self.is_lent, self.begins_anew = own.is_lent, own.begins_anew
        self._next: Span | None = None  # Read, and not given out yet.
        self._ended = False  # This process has nothing more in this pass.
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""
        return self._is_open

    def checked(self, check: Check) -> "PassesOfWorkers":
        """Return the data as a function leaves them: each batch when it comes."""
        self._own = self._own.checked(check)
        return self

    def has_next(self) -> bool:
        """Return whether any process has another batch, for which all of them meet."""
        if self._next is None:
            self._next = self._meet()
            self._is_open = self._next is not None
            if self._next is None:
                self.close()
        return self._next is not None

    def read(self, most: int) -> Span | None:
        """Return the next batch; where this process has none of it, without rows."""
        del most
        if not self.has_next():
            return None
        span, self._next = self._next, None
        self.batches_read += 1
        return span

    def close(self) -> None:
        """Leave the pass."""
        self._own.close()
        self._next, self._ended = None, False
        self._is_open, self.batches_read = False, 0

    def _meet(self) -> Span | None:
        """Return this process's part of the next batch; None where no process has one."""
        own = None if self._ended else self._own.read(1)
        self._ended = own is None
        if own is not None:
            self._latest = own.arrays
        count = 0 if own is None else count_of(own.rows)
        answers = self._gather(
            (tuple(self._share(count)), None if own is None else _kinds(own.arrays)),
            "how many examples each has in the next batch",
        )
        sizes = tuple([size for counts, _ in answers for size in counts])
        kinds = next((kinds for _, kinds in answers if kinds is not None), None)
        if kinds is None:
            return None
        if any(theirs not in (None, kinds) for _, theirs in answers):
            raise ValueError(
                "Workers that have datasets of their own have the same arrays in them, but for the "
                f"number of examples. Received, by worker: {[theirs for _, theirs in answers]}. "
                "Give all of them examples of the same shapes and dtypes, as by `padded_batch` "
                "with `padded_shapes`."
            )
        if own is not None:
            return Span(own.arrays, own.rows, count, sizes)
        return Span(self._nothing(kinds), slice(0, 0), 0, sizes)

    def _nothing(self, kinds: Sequence[tuple[str, tuple[int, ...]]]) -> Arrays:
        """Return arrays without examples, of the shapes that the others have."""
        columns = zip(self._latest.columns, kinds, strict=True)
        empty = tuple([np.empty((0, *shape), column.dtype) for column, (_, shape) in columns])
        return Arrays(empty, self._latest.layout, 0)


def _kinds(arrays: Arrays) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the dtypes and shapes of an example's arrays."""
    return tuple([(column.dtype.name, column.shape[1:]) for column in arrays.columns])
