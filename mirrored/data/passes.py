"""Passes: global batches of arrays, of datasets and generators, and of several workers.

Arrays, and datasets that only order and batch their rows, are read many batches at a time; other
data batch by batch.
"""

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Check, Rows, adapt_batch, count_of, rows_from
from mirrored.data.batches import Span
from mirrored.data.columns import Layout, described
from mirrored.data.dataset_iterators import elements_of
from mirrored.data.elements import DatasetBase
from mirrored.data.py_dataset import PyDataset, batches_of
from mirrored.data.transform import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from mirrored.ops import SeedGenerator

_MOST_AHEAD = 16  # Batches of a stream.
_ROWS_AHEAD = 1 << 17  # Of arrays only the numbers of rows are read.
_OVER = object()


class Passes(ABC):
    """Global batches that are read pass after pass.

    Attributes:
        example: Arrays of the shapes and dtypes that the data have, but for their first axis.
        batches_read: The number of batches of this pass that were read.
        most_ahead: The number that is read at once where nobody asks for another one.
        is_lent: Whether a batch's memory may be written to when the next one is read.
        begins_anew: Whether a pass may follow another one.
        notified: The data, if they are notified when epochs begin and end.
    """

    example: Arrays
    batches_read = 0
    most_ahead: int
    is_lent = False
    begins_anew = True
    notified: PyDataset | None = None

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""

    @abstractmethod
    def checked(self, check: Check) -> "Passes":
        """Return the data as a function leaves them."""

    @abstractmethod
    def has_next(self) -> bool:
        """Return whether this pass has another batch; where none is open, one begins."""

    @abstractmethod
    def read(self, most: int) -> Span | None:
        """Return the next batches, at most as many; None at the end of a pass."""

    @abstractmethod
    def close(self) -> None:
        """Leave the pass."""


class PassesOfRows(Passes):
    """Batches of the rows of arrays, of which nothing is read but which rows they are.

    Args:
        arrays: The arrays.
        batch_size: The number of rows in a batch.
        begin: Begins a pass: returns what gives the rows of the next batches, at most as many as
            it is called with.
        count: The number of batches in a pass; negative: it has no end.
        otherwise: Gives the batches one by one, where not all examples are well.
    """

    def __init__(
        self,
        arrays: Arrays,
        batch_size: int,
        begin: Callable[[], Callable[[int], Rows]],
        count: int = INFINITE_CARDINALITY,
        otherwise: Callable[[], Passes] | None = None,
    ) -> None:
        self._arrays, self._size, self._otherwise = arrays, batch_size, otherwise
        self._begin, self._count = begin, count
        self.example = arrays if otherwise is None else arrays.rows(slice(0, batch_size))
        self.most_ahead = max(1, _ROWS_AHEAD // batch_size)
        self._read: Callable[[int], Rows] | None = None

    def checked(self, check: Check) -> Passes:
        """Return the data as a function leaves them: all at once, unless it raises for some."""
        try:
            self._arrays = check(self._arrays)
        except ValueError:
            if self._otherwise is None:
                raise
            return self._otherwise().checked(check)  # The batch that is wrong is named.
        return self

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""
        return self._read is not None

    def has_next(self) -> bool:
        """Return whether this pass has another batch."""
        if self._read is None:
            self._read = self._begin()
        elif self.batches_read == self._count:
            self.close()
        return self._read is not None

    def read(self, most: int) -> Span | None:
        """Return which rows the next batches are."""
        if not self.has_next() or self._read is None:
            return None
        rows = self._read(most)
        if not isinstance(rows, slice):
            self._arrays = self._arrays.contiguous()
        span = Span(self._arrays, rows, self._size)
        self.batches_read += span.count
        return span

    def close(self) -> None:
        """Leave the pass."""
        self._read, self.batches_read = None, 0


class PassesOfBatches(Passes):
    """Batches that a dataset, a generator or another iterable gives one by one.

    The first batch is read at once: it tells the shapes and dtypes.

    Args:
        data: What gives batches; a user's own iterator goes on where it is, and is left open.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.

    Raises:
        ValueError: There is no batch, or the first one is none.
    """

    most_ahead = _MOST_AHEAD

    def __init__(
        self, data: Iterable[Any], for_what: str, class_weight: Mapping[int, float] | None
    ) -> None:
        self._data, self._for_what, self._class_weight = data, for_what, class_weight
        self.is_lent = not isinstance(data, DatasetBase)
        self.begins_anew = not isinstance(data, Iterator)
        self._iterator: Iterator[Any] | None = None
        self._checks: list[Check] = []
        self._first: Arrays | None = None  # Read, and not given out yet.
        self._layout: Layout | None = None  # That of the first batch.
        try:
            example = self._peek()
        except BaseException:
            self.close()
            raise
        if example is None:
            raise ValueError(
                f"`{for_what}` needs at least one batch. Received: {described(data)} without "
                "batches."
            )
        self.example = example

    def _peek(self) -> Arrays | None:
        """Return the first batch, which stays to be read; None where there is none."""
        self._first = self._next()
        return self._first

    def checked(self, check: Check) -> Passes:
        """Return the data as a function leaves them: each batch when it comes."""
        self._checked(self.example, check)
        self._checks.append(check)
        return self

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""
        return self._iterator is not None

    def has_next(self) -> bool:
        """Return whether there is another batch, which is read."""
        self._first = self._first or self._next()
        return self._first is not None

    def read(self, most: int) -> Span | None:
        """Return the next batch."""
        batch, self._first = self._first or self._next(), None
        if batch is None:
            return None
        batch = self._checked(batch, *self._checks)
        self.batches_read += 1
        return Span(batch, slice(0, batch.size), batch.size)

    def close(self) -> None:
        """Leave the pass; an iterator that is the user's own stays as it is."""
        iterator, self._iterator = self._iterator, None
        self._first, self.batches_read = None, 0
        close = getattr(iterator, "close", None)
        if close is not None and iterator is not self._data:
            close()

    def _next(self) -> Arrays | None:
        """Return the next batch; None at the end of a pass, after which another one begins."""
        if self._iterator is None:
            data = self._data
            self._iterator = (
                elements_of(data._transform) if isinstance(data, DatasetBase) else iter(data)
            )
        element = self._element(self._iterator)
        if element is _OVER:
            self.close()
            return None
        return self._adapted(element)

    def _element(self, iterator: Iterator[Any]) -> Any:
        try:
            return next(iterator, _OVER)
        except Exception as error:
            error.add_note(f"In batch {self.batches_read} of the data (counted from 0).")
            raise

    def _adapted(self, element: Any) -> Arrays:
        try:
            arrays = adapt_batch(element, self._for_what, self._class_weight)
            if self._layout is not None:
                arrays.layout.check_like(self._layout)
        except ValueError as error:
            raise self._located(error) from error
        self._layout = self._layout or arrays.layout
        return arrays

    def _checked(self, batch: Arrays, *checks: Check) -> Arrays:
        try:
            for check in checks:
                batch = check(batch)
            return batch
        except ValueError as error:
            raise self._located(error) from error

    def _located(self, error: ValueError) -> ValueError:
        return ValueError(f"Batch {self.batches_read} of the data (counted from 0): {error}")


class PassesOfPyDataset(PassesOfBatches):
    """Batches that a `PyDataset` makes by their numbers.

    The first batch is made once more, for its shapes and dtypes: what it is may depend on what
    `on_epoch_begin` does.

    Args:
        data: What makes batches.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.
        shuffled: Whether each pass over those that end is in another order, by the global seed.
    """

    _data: PyDataset

    def __init__(
        self,
        data: PyDataset,
        for_what: str,
        class_weight: Mapping[int, float] | None,
        shuffled: bool,
    ) -> None:
        self._shuffled = shuffled
        self._seeds: SeedGenerator | None = None
        self._left: int | None = 0  # Of a pass that was begun; None: there is no end.
        super().__init__(data, for_what, class_weight)
        self.notified = data

    def _peek(self) -> Arrays | None:
        return None if self._data.num_batches == 0 else self._adapted(self._data[0])

    def has_next(self) -> bool:
        """Return whether there is another batch, of which nothing is made yet."""
        if self._iterator is None:
            self._left = self._data.num_batches
            order: Iterable[int] = itertools.count() if self._left is None else range(self._left)
            if self._shuffled and self._left is not None:
                self._seeds = self._seeds or SeedGenerator()
                order = self._seeds.permutation(self._left).tolist()
            self._iterator = batches_of(self._data, order)
        if self._left == 0:
            self.close()
        return self._iterator is not None

    def _next(self) -> Arrays | None:
        if not self.has_next() or self._iterator is None:
            return None
        batch = self._element(self._iterator)
        if self._left is not None:
            self._left -= 1
        return self._adapted(batch)


def cardinality_of(data: Iterable[Any]) -> int:
    """Return how many batches a pass over data has, or one of the constants of datasets."""
    if isinstance(data, DatasetBase):
        return int(data._transform.cardinality)
    if isinstance(data, PyDataset):
        count = data.num_batches
        return INFINITE_CARDINALITY if count is None else count
    if isinstance(data, itertools.cycle | itertools.repeat) and operator.length_hint(data, -1) < 0:
        return INFINITE_CARDINALITY  # A `repeat` with a number of times knows how many are left.
    is_loader = any(
        base.__name__ == "DataLoader" and base.__module__.startswith("torch.")
        for base in type(data).__mro__
    )
    if is_loader and hasattr(getattr(data, "dataset", None), "__len__"):
        return len(data)  # type: ignore[arg-type]
    return UNKNOWN_CARDINALITY


def passes_of(
    data: Iterable[Any],
    for_what: str,
    class_weight: Mapping[int, float] | None,
    *,
    shuffled: bool = False,
) -> Passes:
    """Return the batches that data give.

    Args:
        data: What gives batches.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.
        shuffled: Whether those of a `PyDataset` are taken in another order in each pass.
    """
    if isinstance(data, PyDataset):
        return PassesOfPyDataset(data, for_what, class_weight, shuffled)

    def one_by_one() -> Passes:
        return PassesOfBatches(data, for_what, class_weight)

    transform = data._transform if isinstance(data, DatasetBase) else None
    slices = None if transform is None else transform.batched_slices
    if transform is None or slices is None or not transform.cardinality:
        return one_by_one()
    try:
        arrays = adapt_batch(slices.rows(slice(None)), for_what, class_weight)
    except ValueError:
        return one_by_one()  # The batch that is wrong is named.
    return PassesOfRows(
        arrays,
        transform.batch_size or 1,
        lambda: transform.open_rows(transform.begin()),
        transform.cardinality,
        one_by_one,
    )


def passes_of_arrays(arrays: Arrays, batch_size: int, *, shuffled: bool) -> PassesOfRows:
    """Return batches of all rows of arrays, pass after pass without end.

    Args:
        arrays: The arrays.
        batch_size: The number of rows in a batch; the last one of a pass may have fewer.
        shuffled: Whether each pass is in another order, which a `SeedGenerator` draws. Its seed is
            taken when the passes begin: the model, whose weights are drawn from the global stream
            too, is built by then.
    """
    size = arrays.size

    def begin() -> Callable[[int], Rows]:
        seeds = SeedGenerator() if shuffled else None
        order: Rows = slice(0, size) if seeds is None else seeds.permutation(size)
        place = 0

        def read(most: int) -> Rows:
            nonlocal order, place
            if place >= size:
                place = 0
                if seeds is not None:
                    order = seeds.permutation(size)
            start, place = place, place + most * batch_size
            return rows_from(order, start, most * batch_size)

        return read

    return PassesOfRows(arrays, batch_size, begin)


# ---------------------------------------------------------------------------------- several workers

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
                "If workers have separate datasets, these must have the same arrays, except for "
                "the number of examples. Received, by worker: "
                f"{[theirs for _, theirs in answers]}. Use the same shapes and dtypes on all "
                "workers, for example with `padded_batch` and `padded_shapes`."
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
