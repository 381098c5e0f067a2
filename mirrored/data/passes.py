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

from mirrored._logging import logger
from mirrored.data.arrays import Arrays, Check, Rows, adapt_batch, count_of, rows_from
from mirrored.data.batches import Span, check_of
from mirrored.data.columns import Layout, described
from mirrored.data.dataset_iterators import (
    Position,
    elements_of,
    go_on_after,
    position_of,
    words_of,
)
from mirrored.data.elements import DatasetBase
from mirrored.data.py_dataset import PyDataset, batches_of
from mirrored.data.rng import Iteration
from mirrored.data.row_transforms import skip_batches
from mirrored.data.transform import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Transform,
    external_of,
)
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

    @abstractmethod
    def place(self) -> list[int]:
        """Return the position behind the batches that were read, for `go_to` of another run."""

    @abstractmethod
    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position.

        Args:
            place: What `place` returned, for the same data.

        Raises:
            ValueError: The data cannot be at this position.
        """

    def facts(self) -> dict[str, int]:
        """Return numbers that other data hardly have, as far as they are known without reading."""
        return {}


class PassSeeds:
    """What the orders of passes are drawn from, and its state where the latest pass began.

    Attributes:
        generator: The generator; None: nothing was drawn.
    """

    generator: SeedGenerator | None = None
    _before: tuple[int, ...] = ()

    def begin(self) -> SeedGenerator:
        """Return the generator for the order of a pass that begins."""
        self.generator = self.generator or SeedGenerator()
        self._before = self.generator.state
        return self.generator

    def place(self, is_open: bool) -> tuple[int, ...]:
        """Return the state that the pass which is open, or the next one, is drawn from."""
        return self._before if is_open or self.generator is None else self.generator.state

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a state that `place` returned."""
        if place:
            self.generator = self.generator or SeedGenerator(0)
            self.generator.restore(place)


class PassesOfRows(Passes):
    """Batches of the rows of arrays, of which nothing is read but which rows they are.

    Args:
        arrays: The arrays.
        batch_size: The number of rows in a batch.
        order: The order of the rows.
        count: The number of batches in a pass; negative: it has no end.
        otherwise: Gives the batches one by one, where not all examples are well.
    """

    is_open = False

    def __init__(
        self,
        arrays: Arrays,
        batch_size: int,
        order: "_OrderOfArrays | _OrderOfDataset",
        count: int = INFINITE_CARDINALITY,
        otherwise: Callable[[], Passes] | None = None,
    ) -> None:
        self._arrays, self._size, self._otherwise = arrays, batch_size, otherwise
        self._order, self._count = order, count
        self._begun = False
        self.example = arrays if otherwise is None else arrays.rows(slice(0, batch_size))
        self.most_ahead = max(1, _ROWS_AHEAD // batch_size)

    def checked(self, check: Check) -> Passes:
        """Return the data as a function leaves them: all at once, unless it raises for some."""
        try:
            self._arrays = check(self._arrays)
        except ValueError:
            if self._otherwise is None:
                raise
            return self._otherwise().checked(check)  # The batch that is wrong is named.
        return self

    def has_next(self) -> bool:
        """Return whether this pass has another batch."""
        if not self.is_open:
            self._order.begin()
            self.is_open = self._begun = True
        elif self.batches_read == self._count:
            self.close()
        return self.is_open

    def read(self, most: int) -> Span | None:
        """Return which rows the next batches are."""
        if not self.has_next():
            return None
        rows = self._order.read(most)
        if not isinstance(rows, slice):
            self._arrays = self._arrays.contiguous()
        span = Span(self._arrays, rows, self._size)
        self.batches_read += span.count
        return span

    def close(self) -> None:
        """Leave the pass."""
        self.is_open, self.batches_read = False, 0

    def place(self) -> list[int]:
        """Return the position in the pass, and where the order of its rows comes from."""
        order = self._order.place(self.batches_read) if self._begun else []
        return [self.is_open, self.batches_read, *order]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position; no row is read for it."""
        is_open, self.batches_read, *order = place
        self.is_open, self._begun = bool(is_open), bool(order)
        if order:
            self._order.go_to(order)

    def facts(self) -> dict[str, int]:
        """Return the number of rows, that of a batch, and a checksum of some rows."""
        size = self._arrays.size
        check = check_of(self._arrays.columns, np.array([0, size - 1]))
        return {"rows": size, "check": check, "batch_size": self._size}


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
        self._position = Position()  # Of the latest pass over a dataset.
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
            self._open(Position())
        element = self._element(self._iterator or iter(()))
        if element is _OVER:
            self.close()
            return None
        return self._adapted(element)

    def _open(self, position: Position) -> None:
        """Begin a pass, or continue one over a dataset."""
        data, self._position = self._data, position
        self._iterator = (
            elements_of(data._transform, position) if isinstance(data, DatasetBase) else iter(data)
        )

    def place(self) -> list[int]:
        """Return the position in the pass, and where a dataset's random numbers come from."""
        words: Sequence[int] = ()
        if isinstance(self._data, DatasetBase):
            position = Position(self.batches_read, self._position.iteration)
            words = words_of(self._data._transform, position, any_source=True)
        return [self.is_open, self.batches_read, *words]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position; batches that only Python knows are read again, and dropped."""
        is_open, count, *words = place
        data = self._data
        if isinstance(data, DatasetBase):
            self.close()
            self._position = position_of(data._transform, words)
            if self._position.iteration is not None:
                go_on_after(data._transform, self._position.iteration)
        elif self.begins_anew or not is_open:
            self.close()
        if not is_open:
            return
        if count and (not isinstance(data, DatasetBase) or external_of(data._transform)):
            logger.warning(
                "Reads %d batches of %s again, and drops them. The run continues after them. Its "
                "results are those of an uninterrupted run if these batches are the same again.",
                count,
                described(data),
            )
        if isinstance(data, DatasetBase):
            self._open(self._position)
        else:
            self._skip(count)
        self.batches_read = count

    def _skip(self, count: int) -> None:
        for number in range(count):
            if self._first is None and self._next() is None:
                raise ValueError(
                    f"The data ended before the position of the backup. Received: "
                    f"{described(self._data)} with {number} batches, and a backup after {count}. "
                    "Pass the data of the earlier run."
                )
            self._first = None

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
        self._seeds = PassSeeds()
        self._left: int | None = 0  # Of a pass that was begun; None: there is no end.
        super().__init__(data, for_what, class_weight)
        self.notified = data

    def _peek(self) -> Arrays | None:
        return None if self._data.num_batches == 0 else self._adapted(self._data[0])

    def has_next(self) -> bool:
        """Return whether there is another batch, of which nothing is made yet."""
        if self._iterator is None:
            self._begin(0)
        if self._left == 0:
            self.close()
        return self._iterator is not None

    def _begin(self, first: int) -> None:
        """Begin a pass, without its first batches."""
        count = self._data.num_batches
        order: Iterable[int] = itertools.count(first)
        if count is not None:
            order = range(first, count)
            if self._shuffled:
                order = self._seeds.begin().permutation(count)[first:].tolist()
        self._left = None if count is None else count - first
        self._iterator = batches_of(self._data, order)

    def place(self) -> list[int]:
        """Return the position in the pass, and what its order was drawn from."""
        return [self.is_open, self.batches_read, *self._seeds.place(self.is_open)]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position; the batches before it are not made."""
        is_open, count, *drawn = place
        self.close()
        self._seeds.go_to(drawn)
        if is_open:
            self._begin(count)
            self.batches_read = count

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
        _OrderOfDataset(transform),
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
    return PassesOfRows(arrays, batch_size, _OrderOfArrays(arrays.size, batch_size, shuffled))


class _OrderOfArrays:
    """All rows of arrays, pass after pass without end."""

    def __init__(self, size: int, batch_size: int, shuffled: bool) -> None:
        self._size, self._batch_size, self._shuffled = size, batch_size, shuffled
        self._seeds = PassSeeds()
        self._order: Rows = slice(0, size)
        self._row = 0

    def begin(self) -> None:
        """Begin a pass."""
        self._seeds.generator = None
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._row = 0
        if self._shuffled:
            self._order = self._seeds.begin().permutation(self._size)

    def read(self, most: int) -> Rows:
        """Return the rows of the next batches, at most `most` batches."""
        if self._row >= self._size:
            self._begin_pass()
        begin, count = self._row, most * self._batch_size
        self._row += count
        return rows_from(self._order, begin, count)

    def place(self, batches_read: int) -> list[int]:
        """Return the position after a number of batches of the pass."""
        return [min(self._row, self._size), *self._seeds.place(is_open=True)]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position that `place` returned."""
        row, *drawn = place
        self._seeds.go_to(drawn)
        self._shuffled = self._shuffled or bool(drawn)
        self._begin_pass()
        self._row = row


class _OrderOfDataset:
    """The rows of a dataset that only orders and batches them; see `_OrderOfArrays`."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._iteration = Iteration()
        self.read: Callable[[int], Rows]

    def begin(self) -> None:
        self._open(self._transform.begin())

    def _open(self, iteration: Iteration) -> None:
        self._iteration = iteration
        self.read = self._transform.open_rows(iteration)

    def place(self, batches_read: int) -> list[int]:
        return [*words_of(self._transform, Position(batches_read, self._iteration))]

    def go_to(self, place: Sequence[int]) -> None:
        position = position_of(self._transform, place)
        if position.iteration is None:
            return
        go_on_after(self._transform, position.iteration)
        self._open(position.iteration)
        skip_batches(self.read, self._transform.batch_size or 1, position.taken)


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

    is_open = False
    most_ahead = 1  # They meet for a batch, run its step, and meet again.

    def __init__(self, own: Passes, share: Callable[[int], Sequence[int]], gather: Gather) -> None:
        self._own, self._share, self._gather = own, share, gather
        self.example = self._latest = own.example
        self.is_lent, self.begins_anew = own.is_lent, own.begins_anew
        self._next: Span | None = None  # Read, and not given out yet.
        self._ended = False  # This process has nothing more in this pass.

    def checked(self, check: Check) -> "PassesOfWorkers":
        """Return the data as a function leaves them: each batch when it comes."""
        self._own = self._own.checked(check)
        return self

    def has_next(self) -> bool:
        """Return whether any process has another batch, for which all of them meet."""
        if self._next is None:
            self._next = self._meet()
            self.is_open = self._next is not None
            if self._next is None:
                self.close()
        return self._next is not None

    def read(self, most: int) -> Span | None:
        """Return the next batch; where this process has none of it, without rows."""
        if not self.has_next():
            return None
        span, self._next = self._next, None
        self.batches_read += 1
        return span

    def close(self) -> None:
        """Leave the pass."""
        self._own.close()
        self._next, self._ended = None, False
        self.is_open, self.batches_read = False, 0

    def place(self) -> list[int]:
        """Return the position of all processes, and that of the batches of this one."""
        return [self.is_open, self.batches_read, self._ended, *self._own.place()]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position of this process."""
        is_open, self.batches_read, ended, *own = place
        self._own.go_to(own)
        self.is_open, self._ended, self._next = bool(is_open), bool(ended), None

    def facts(self) -> dict[str, int]:
        """Return those of the batches of this process."""
        return self._own.facts()

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
