"""What an epoch's batches are, for arrays, and for data that arrive batch by batch.

Both give the same kind of spans, so that one loop trains on either.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from mirrored._logging import logger
from mirrored.data.adapters import Arrays, adapt, described, with_class_weights
from mirrored.data.batches import ArrayBatches, BatchList, Span
from mirrored.data.pipeline import Pipeline
from mirrored.data.stages import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from mirrored.ops import SeedGenerator

# Running several batches of a stream in one go takes less Python. Where no callback looks between
# steps, so many batches are read first: no more bytes than a cache holds, and for no longer than a
# short step takes, since a `prefetch` makes the next batches while steps run.
_MOST_AHEAD = 16
_BYTES_AHEAD = 8 << 20
_SECONDS_AHEAD = 1e-3
_NO_ARRAYS = (list, tuple, Mapping, type(None))
Check = Callable[[Arrays], Arrays]


class Epochs(ABC):
    """The batches of one epoch after another.

    Attributes:
        steps: How many batches an epoch has, None where that is not known yet.
        example: Arrays of the shapes and dtypes that the data have, but for their first axis.
        ran_out: Whether the data ended before an epoch did.
    """

    steps: int | None
    example: Arrays
    ran_out = False

    @abstractmethod
    def check_with(self, check: Check) -> None:
        """Let all data go through a function, which may change them or raise.

        Args:
            check: From arrays as they were given to those that steps are to have.

        Raises:
            ValueError: It raised for what is known of the data by now.
        """

    @abstractmethod
    def begin(self) -> bool:
        """Make ready for an epoch; return whether there is a batch for it."""

    @abstractmethod
    def spans(self, most: int | None) -> Iterator[Span]:
        """Yield the batches of an epoch that was begun.

        Args:
            most: How many a span may have; None: as many as is sensible.
        """

    def close(self) -> None:
        """End what works for the data that have not been used."""
        return


class ArrayEpochs(Epochs):
    """Batches of arrays, pass after pass.

    Args:
        arrays: The examples.
        batch_size: The number of examples in a global batch.
        steps: How many batches an epoch has; at most those of a pass.
        goes_on: Whether an epoch goes on where the one before ended.
    """

    def __init__(self, arrays: Arrays, batch_size: int, steps: int, *, goes_on: bool) -> None:
        self.example = arrays
        self.steps: int = steps
        self._batch_size, self._goes_on = batch_size, goes_on
        self._seeds: SeedGenerator | None = None
        self._left: Span | None = None

    def check_with(self, check: Check) -> None:
        """Check all examples; see `Epochs`."""
        self.example = check(self.example)

    def shuffle(self) -> None:
        """Take the examples in another order in each pass, by the global seed."""
        self._seeds = SeedGenerator()
        self.example = self.example.contiguous()

    def begin(self) -> bool:
        """Make ready for an epoch; there are always batches."""
        if not self._goes_on:
            self._left = None
        return True

    def spans(self, most: int | None) -> Iterator[Span]:
        """Yield the batches of an epoch; see `Epochs`."""
        wanted = self.steps
        while wanted:
            span = self._left or self._next_pass()
            taken = min(wanted, span.count)
            rest = span.count - taken
            self._left = Span(span.batches, span.first + taken, rest) if rest else None
            yield from Span(span.batches, span.first, taken).split(most or taken)
            wanted -= taken

    def _next_pass(self) -> Span:
        """Return all batches of another pass over the data."""
        order = None if self._seeds is None else self._seeds.permutation(self.example.size)
        batches = ArrayBatches(self.example, self._batch_size, order)
        return Span(batches, 0, len(batches))


class StreamEpochs(Epochs):
    """Batches that a dataset, a generator or another iterable gives.

    The first batch is read at once: it tells the shapes and dtypes. Data that can be iterated over
    again begin anew with each epoch without `steps`, and wherever they ended. A user's own iterator
    goes on where it is, and is left open.

    Args:
        data: What gives batches.
        for_what: The method that asks, named in errors.
        steps: How many batches an epoch has; None: all of a pass.
        steps_name: The argument that `steps` was given for.
        goes_on: Whether an epoch with `steps` goes on where the one before ended.
        class_weight: A weight for each integer label, or None.

    Raises:
        ValueError: There is no batch, the first one is none, or there is no end without `steps`.
    """

    def __init__(
        self,
        data: Iterable[Any],
        for_what: str,
        steps: int | None,
        steps_name: str,
        *,
        goes_on: bool,
        class_weight: Mapping[int, float] | None = None,
    ) -> None:
        size = data._stage.cardinality if isinstance(data, Pipeline) else UNKNOWN_CARDINALITY
        if size == INFINITE_CARDINALITY and steps is None:
            raise ValueError(
                f"`{for_what}` needs `{steps_name}` for a dataset that never ends. Received: an "
                f"infinite dataset and {steps_name}=None. Give it, or leave `.repeat()` out."
            )
        self.steps = steps if steps is not None or size < 0 else size
        self._data, self._for_what, self._steps_name = data, for_what, steps_name
        self._wanted, self._goes_on, self._class_weight = steps, goes_on, class_weight
        self._iterator: Iterator[Any] | None = None
        self._check: Check = _unchanged
        self._first: Arrays | None = None  # Read, and not given out yet.
        self._given = 0  # Batches that this pass gave.
        try:
            first = self._read()
        except BaseException:
            self.close()
            raise
        if first is None:
            raise ValueError(
                f"`{for_what}` needs at least one batch. Received: "
                f"{described(data)} that gave none."
            )
        self._first = self.example = first

    def check_with(self, check: Check) -> None:
        """Check the first batch, and each of the others when it comes; see `Epochs`."""
        self._check = check
        self._checked(self.example)

    def begin(self) -> bool:
        """Make ready for an epoch by reading its first batch; see `Epochs`."""
        if self._given and not self._goes_on:
            self.close()
        if self._first is None:
            was_open = self._iterator is not None
            self._first = self._read()
            if self._first is None and was_open:
                self._first = self._read()  # Of another pass.
        if self._first is None:
            self._run_out(0)
        return self._first is not None

    def spans(self, most: int | None) -> Iterator[Span]:
        """Yield the batches of an epoch; see `Epochs`."""
        done, wanted = 0, self._wanted
        while wanted is None or done < wanted:
            limit = most or _MOST_AHEAD
            batches, failure = self._gathered(
                limit if wanted is None else min(limit, wanted - done), asked=most is not None
            )
            done += len(batches)
            if batches:
                yield Span(BatchList(batches), 0, len(batches))
            if failure is not None:  # What came before it was well, and has been run.
                try:
                    raise failure
                finally:
                    del failure
            if self._iterator is None:
                if wanted is None:
                    self.steps = done
                elif done < wanted:
                    self._run_out(done)
                return

    def close(self) -> None:
        """Leave the pass; an iterator that is the user's own stays as it is."""
        iterator, self._iterator = self._iterator, None
        self._first, self._given = None, 0
        close = getattr(iterator, "close", None)
        if close is not None and iterator is not self._data:
            close()

    def _gathered(self, most: int, *, asked: bool) -> tuple[list[Arrays], Exception | None]:
        """Return the next batches and what ended them; as many as asked, or as is sensible."""
        batches: list[Arrays] = []
        room, until = _BYTES_AHEAD, perf_counter() + _SECONDS_AHEAD
        while len(batches) < most and (
            asked or not batches or (room > 0 and perf_counter() < until)
        ):
            if batches and not isinstance(self._data, Pipeline):
                batches[-1] = batches[-1].copied()  # The next one may be in the same memory.
            try:
                read, self._first = self._first or self._read(), None
                if read is None:
                    break
                batches.append(self._checked(read))
            except Exception as error:
                if not batches:
                    raise
                return batches, error
            self._given += 1
            room -= sum(0 if each is None else each.nbytes for each in read.columns)
        return batches, None

    def _read(self) -> Arrays | None:
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
            return self._check(batch)
        except ValueError as error:
            raise self._located(error) from error

    def _located(self, error: ValueError) -> ValueError:
        return ValueError(f"Batch {self._given} of the data (counted from 0): {error}")

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


def is_stream(data: Any) -> bool:
    """Return whether data give batches one after another, instead of being examples themselves.

    Args:
        data: What a user gave.

    Example:
        >>> from mirrored.data.epochs import is_stream
        >>> is_stream([1.0, 2.0]), is_stream(iter([([1.0], [2.0])]))
        (False, True)
    """
    if isinstance(data, Pipeline | Iterator):
        return True
    # Sequences and mappings of numbers, arrays of any library, tensors.
    is_whole = isinstance(data, Sequence | Mapping) or hasattr(data, "__array__")
    return isinstance(data, Iterable) and not is_whole and not hasattr(data, "numpy")


def adapt_batch(
    element: Any, for_what: str, class_weight: Mapping[int, float] | None = None
) -> Arrays:
    """Check what a stream gave as a batch, and return it as arrays.

    Args:
        element: (x, y) or (x, y, sample_weight), in a tuple or a list; for "predict" x alone will
            do.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.

    Raises:
        ValueError: It is no such batch.

    Example:
        >>> from mirrored.data.epochs import adapt_batch
        >>> adapt_batch(([[1.0], [2.0]], [0, 1]), "fit").size
        2
    """
    parts = element if isinstance(element, tuple) else (element,)
    if isinstance(element, list) and element and all(np.ndim(part) for part in element):
        is_arrays = all(hasattr(part, "ndim") for part in element)
        parts = tuple(element) if is_arrays else parts
    if for_what == "predict":
        parts = parts[:1]
    if not (for_what == "predict" or 2 <= len(parts) <= 3):
        raise ValueError(
            f"`{for_what}` needs batches of (x, y) or (x, y, sample_weight). Received: "
            f"{described(element)}{f' of {len(element)}' if isinstance(element, tuple) else ''}."
        )
    # Of lists `adapt` says what is wrong with them.
    shapes = [np.shape(each) for each in parts if not isinstance(each, _NO_ARRAYS)]
    if () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(unbatched(for_what, shapes))
    arrays = adapt(*parts, for_what=for_what)
    return arrays if class_weight is None else with_class_weights(arrays, class_weight)


def unbatched(for_what: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """Return what an error says of elements that are no batches.

    Args:
        for_what: The method that asks.
        shapes: The shapes of an element's arrays.

    Example:
        >>> from mirrored.data.epochs import unbatched
        >>> "`.batch(batch_size)`" in unbatched("fit", [(64,), ()])
        True
    """
    return (
        f"`{for_what}` needs batches, whose arrays all begin with an axis of the examples. "
        f"Received: arrays with the shapes {list(shapes)}. Batch single examples with the "
        "dataset's `.batch(batch_size)`, and give as many targets as inputs."
    )


def _unchanged(arrays: Arrays) -> Arrays:
    return arrays
