"""What an epoch's batches are: of arrays, and of data that arrive batch by batch.

Both are read pass after pass, so that one loop trains on either.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from mirrored._logging import logger
from mirrored.data.arrays import Arrays, Rows, adapt_batch, count_of, described
from mirrored.data.batches import Block, Span
from mirrored.data.pipeline import Pipeline
from mirrored.data.rng import FitRng
from mirrored.data.row_transforms import Batched, Repeated, Shuffled
from mirrored.data.sources import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Slices, Stage

# Running several batches of a stream in one go takes less Python. Where no callback looks between
# steps, so many batches are read first: no more bytes than a cache holds, and for no longer than a
# short step takes, since a `prefetch` makes the next batches while steps run.
_MOST_AHEAD = 16
_BYTES_AHEAD = 8 << 20
_SECONDS_AHEAD = 1e-3
_ROWS_AHEAD = 1 << 17  # Of arrays only the numbers of rows are read.
Check = Callable[[Arrays], Arrays]


class Passes(ABC):
    """The batches of data, in one pass over them after another.

    Attributes:
        example: Arrays of the shapes and dtypes that the data have, but for their first axis.
        given: How many batches of this pass were read.
        most_ahead: How many are read at once where nobody asks for another number.
        is_lent: Whether a batch's memory may be written to when the next one is read.
    """

    example: Arrays
    given: int
    most_ahead: int
    is_lent = False

    @abstractmethod
    def checked(self, check: Check) -> "Passes":
        """Return the data as a function leaves them, which may raise ValueError; see `Epochs`."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""

    @abstractmethod
    def has_next(self) -> bool:
        """Return whether this pass has another batch, or a new one any; else the pass is over."""

    @abstractmethod
    def read(self, most: int) -> Block | None:
        """Return the next batches, at most so many; None at the end of a pass."""

    @abstractmethod
    def close(self) -> None:
        """Leave the pass."""


class PassesOfRows(Passes):
    """Batches of the rows of arrays, of which nothing is read but which rows they are.

    Args:
        stage: Which rows.
        arrays: The arrays.
        otherwise: Gives the batches one by one, where not all examples are well.
    """

    def __init__(
        self, stage: Stage, arrays: Arrays, otherwise: Callable[[], Passes] | None = None
    ) -> None:
        self._stage, self._arrays, self._otherwise = stage, arrays, otherwise
        self._size = stage.batch_size or 1
        self.example = arrays.rows(slice(0, self._size))
        self.most_ahead = max(1, _ROWS_AHEAD // self._size)
        self._read: Callable[[int], Rows] | None = None
        self.given = 0

    def checked(self, check: Check) -> Passes:
        """Check all examples at once."""
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
            self._read = self._stage.open_rows(self._stage.begin())
        elif self.given == self._stage.cardinality:
            self.close()
        return self._read is not None

    def read(self, most: int) -> Block | None:
        """Return which rows the next batches are."""
        if not self.has_next() or self._read is None:
            return None
        rows = self._read(most)
        self.given += -(-count_of(rows) // self._size)
        if not isinstance(rows, slice):
            self._arrays = self._arrays.contiguous()
        return Block(self._arrays, rows, self._size)

    def close(self) -> None:
        """Leave the pass."""
        self._read, self.given = None, 0


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
        self.is_lent = not isinstance(data, Pipeline)
        self._iterator: Iterator[Any] | None = None
        self._check: Check | None = None
        self._first: Arrays | None = None  # Read, and not given out yet.
        self.given = 0
        try:
            self._first = self._next()
        except BaseException:
            self.close()
            raise
        if self._first is None:
            raise ValueError(
                f"`{for_what}` needs at least one batch. Received: "
                f"{described(data)} that gave none."
            )
        self.example = self._first

    def checked(self, check: Check) -> Passes:
        """Check the first batch, and each of the others when it comes."""
        self._check = check
        self._checked(self.example)
        return self

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun and not ended."""
        return self._iterator is not None

    def has_next(self) -> bool:
        """Return whether there is another batch, which is read."""
        self._first = self._first or self._next()
        return self._first is not None

    def read(self, most: int) -> Block | None:
        """Return the next batch."""
        batch, self._first = self._first or self._next(), None
        if batch is None:
            return None
        batch = self._checked(batch)
        self.given += 1
        return Block(batch, slice(0, batch.size), batch.size)

    def close(self) -> None:
        """Leave the pass; an iterator that is the user's own stays as it is."""
        iterator, self._iterator = self._iterator, None
        self._first, self.given = None, 0
        close = getattr(iterator, "close", None)
        if close is not None and iterator is not self._data:
            close()

    def _next(self) -> Arrays | None:
        """Return the next batch; None at the end of a pass, after which another one begins."""
        if self._iterator is None:
            data = self._data
            self._iterator = data._host_elements() if isinstance(data, Pipeline) else iter(data)
        try:
            element = next(self._iterator)
        except StopIteration:
            self.close()
            return None
        try:
            return adapt_batch(element, self._for_what, self._class_weight)
        except ValueError as error:
            raise self._located(error) from error

    def _checked(self, batch: Arrays) -> Arrays:
        try:
            return batch if self._check is None else self._check(batch)
        except ValueError as error:
            raise self._located(error) from error

    def _located(self, error: ValueError) -> ValueError:
        return ValueError(f"Batch {self.given} of the data (counted from 0): {error}")


def passes_of(
    data: Iterable[Any], for_what: str, class_weight: Mapping[int, float] | None
) -> Passes:
    """Return the batches that data give."""

    def one_by_one() -> Passes:
        return PassesOfBatches(data, for_what, class_weight)

    stage = data._stage if isinstance(data, Pipeline) else None
    if stage is None or stage.slices is None or stage.batch_size is None or not stage.cardinality:
        return one_by_one()
    try:
        arrays = adapt_batch(stage.slices.rows(slice(None)), for_what, class_weight)
    except ValueError:
        return one_by_one()  # The batch that is wrong is named.
    return PassesOfRows(stage, arrays, one_by_one)


class Epochs:
    """The batches of one epoch after another.

    Data that can be iterated over again begin anew with each epoch without `steps`, and wherever
    they ended.

    Args:
        passes: The batches.
        for_what: The method that asks, named in errors.
        steps: How many batches an epoch has; None: all of a pass.
        steps_name: The argument that `steps` was given for.
        goes_on: Whether an epoch with `steps` goes on where the one before ended.

    Attributes:
        steps: How many batches an epoch has, None where that is not known yet.
        ran_out: Whether the data ended before an epoch did.
        is_stream: Whether the data came as batches.
    """

    steps: int | None
    ran_out = False

    def __init__(
        self,
        passes: Passes,
        for_what: str,
        steps: int | None,
        steps_name: str,
        *,
        goes_on: bool,
        is_stream: bool,
    ) -> None:
        self.steps = self._wanted = steps
        self._passes, self._for_what, self._steps_name = passes, for_what, steps_name
        self._goes_on, self.is_stream = goes_on, is_stream

    @classmethod
    def of_arrays(
        cls, arrays: Arrays, batch_size: int, steps: int, *, goes_on: bool, shuffled: bool = False
    ) -> "Epochs":
        """Return batches of arrays, pass after pass.

        Args:
            arrays: The examples.
            batch_size: The number of examples in a global batch.
            steps: How many batches an epoch has; at most those of a pass.
            goes_on: Whether an epoch goes on where the one before ended.
            shuffled: Whether each pass is in another order, by the global seed.
        """
        given = tuple(each for each in arrays.columns if each is not None)
        rows: Stage = Slices(given, arrays.size)
        if shuffled:
            rows = Shuffled(rows, arrays.size, FitRng())
        stage = Repeated(Batched(rows, batch_size, drop_remainder=False), None)
        passes = PassesOfRows(stage, arrays)
        return cls(passes, "", steps, "", goes_on=goes_on, is_stream=False)

    @classmethod
    def of_stream(
        cls,
        data: Iterable[Any],
        for_what: str,
        steps: int | None,
        steps_name: str,
        *,
        goes_on: bool,
        class_weight: Mapping[int, float] | None = None,
    ) -> "Epochs":
        """Return the batches that a dataset, a generator or another iterable gives.

        Args:
            data: What gives batches.
            for_what: The method that asks, named in errors.
            steps: How many batches an epoch has; None: all of a pass.
            steps_name: The argument that `steps` was given for.
            goes_on: Whether an epoch with `steps` goes on where the one before ended.
            class_weight: A weight for each integer label, or None.

        Raises:
            ValueError: There is no batch, the first one is none, or there is no end without
                `steps`.
        """
        size = data._stage.cardinality if isinstance(data, Pipeline) else UNKNOWN_CARDINALITY
        if size == INFINITE_CARDINALITY and steps is None:
            raise ValueError(
                f"`{for_what}` needs `{steps_name}` for a dataset that never ends. Received: an "
                f"infinite dataset and {steps_name}=None. Give it, or leave `.repeat()` out."
            )
        passes = passes_of(data, for_what, class_weight)
        epochs = cls(passes, for_what, steps, steps_name, goes_on=goes_on, is_stream=True)
        epochs.steps = steps if steps is not None or size < 0 else size
        return epochs

    @property
    def example(self) -> Arrays:
        """Arrays of the shapes and dtypes that the data have, but for their first axis."""
        return self._passes.example

    def check_with(self, check: Check) -> None:
        """Let all data go through a function, which may change them or raise.

        Args:
            check: From arrays as they were given to those that steps are to have.

        Raises:
            ValueError: It raised for what is known of the data by now.
        """
        self._passes = self._passes.checked(check)

    def begin(self) -> bool:
        """Make ready for an epoch; return whether there is a batch for it."""
        passes = self._passes
        if passes.given and not self._goes_on:
            passes.close()
        was_open = passes.is_open
        found = passes.has_next() or (was_open and passes.has_next())  # Of another pass.
        if not found:
            self._run_out(0)
        return found

    def spans(self, most: int | None) -> Iterator[Span]:
        """Yield the batches of an epoch that was begun.

        Args:
            most: How many a span may have; None: as many as is sensible.
        """
        done, wanted = 0, self._wanted
        while wanted is None or done < wanted:
            limit = most or self._passes.most_ahead
            span, failure = self._gathered(
                limit if wanted is None else min(limit, wanted - done), asked=most is not None
            )
            done += span.count
            if span.count:
                yield span
            if failure is not None:  # What came before it was well, and has been run.
                try:
                    raise failure
                finally:
                    del failure
            if not self._passes.is_open:
                if wanted is None:
                    self.steps = done
                elif done < wanted:
                    self._run_out(done)
                return

    def close(self) -> None:
        """End what works for the data that have not been used."""
        self._passes.close()

    def _gathered(self, most: int, *, asked: bool) -> tuple[Span, Exception | None]:
        """Return the next batches and what ended them; as many as asked, or as is sensible."""
        blocks: list[Block] = []
        count, room, until = 0, _BYTES_AHEAD, perf_counter() + _SECONDS_AHEAD
        while count < most and (asked or not blocks or (room > 0 and perf_counter() < until)):
            if blocks and self._passes.is_lent:
                blocks[-1] = replace(blocks[-1], arrays=blocks[-1].arrays.copied())
            try:
                block = self._passes.read(most - count)
            except Exception as error:
                if not blocks:
                    raise
                return Span(blocks), error
            if block is None:
                break
            blocks.append(block)
            count += len(block)
            room -= sum(0 if each is None else each.nbytes for each in block.arrays.columns)
        return Span(blocks), None

    def _run_out(self, done: int) -> None:
        if self.ran_out:  # Validation may be asked for again after each epoch.
            return
        self.ran_out = True
        asked = "" if self._wanted is None else f" with {self._steps_name}={self._wanted}"
        logger.warning(
            "Your input ran out of data; interrupting `%s`. Make sure that your dataset or "
            "generator can generate at least `steps_per_epoch * epochs` batches. You may need to "
            "use the `.repeat()` function when building your dataset. Received: data that ended "
            "after %d batches of an epoch%s.",
            self._for_what,
            done,
            asked,
        )
