"""Global batches, which are rows of arrays that are gathered where a step wants them.

What a batch is does not depend on how many replicas will share it. Arrays, and datasets that only
order and batch their rows, give many at a time; other data give one by one what they made.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Rows, adapt_batch, count_of, rows_from
from mirrored.data.columns import Columns, Layout, described
from mirrored.data.pipeline import Pipeline
from mirrored.data.sources import Transform

_MOST_AHEAD = 16  # Batches of a stream.
_ROWS_AHEAD = 1 << 17  # Of arrays only the numbers of rows are read.


@dataclass(frozen=True, slots=True)
class Chunk:
    """Batches that are rows of the same arrays: alike, but for the last, which may be shorter.

    Attributes:
        arrays: The arrays.
        rows: Their rows, those of all batches.
        batch_size: How many rows a batch has.
    """

    arrays: Arrays
    rows: Rows
    batch_size: int

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-count_of(self.rows) // self.batch_size)

    def __getitem__(self, index: int) -> Arrays:
        """Return one batch, as copies of its rows, or views where they are in order."""
        return self.arrays.rows(self.part(index, 1).rows)

    def part(self, first: int, count: int) -> "Chunk":
        """Return some of the batches.

        Args:
            first: The number of the first one.
            count: How many.
        """
        size = self.batch_size
        return replace(self, rows=rows_from(self.rows, first * size, count * size))

    def alike(self) -> "Iterator[Chunk]":
        """Yield the whole batches, and then a shorter one."""
        whole = count_of(self.rows) // self.batch_size
        if whole:
            yield self.part(0, whole)
        if whole < len(self):
            last = self.part(whole, 1)
            yield replace(last, batch_size=count_of(last.rows))

    def feeder(self, shard: slice, targets: Sequence[Any]) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays, called with the batch's number.

        Args:
            shard: Which rows of the batch.
            targets: An array for each column.
        """
        step, count, rows = self.batch_size, shard.stop - shard.start, self.rows
        wanted = list(zip(self.arrays.columns, targets, strict=True))
        if isinstance(rows, slice):
            origin = rows.start + shard.start

            def feed_slice(i: int) -> None:
                begin = origin + i * step
                for array, target in wanted:
                    np.copyto(target, array[begin : begin + count], "unsafe")

            return feed_slice
        gathers = [(_gatherer(array, target), target) for array, target in wanted]

        def feed_rows(i: int) -> None:
            begin = shard.start + i * step
            taken = rows[begin : begin + count]
            for gather, target in gathers:
                # "clip" lets NumPy write straight into the target; the rows are known to be there.
                gather(taken, 0, target, "clip")

        return feed_rows


class Span:
    """Some batches in a row.

    Args:
        chunks: The batches.

    Attributes:
        count: How many they are.

    Example:
        >>> from mirrored.data.arrays import adapt
        >>> from mirrored.data.batches import Chunk, Span
        >>> span = Span([Chunk(adapt([1.0, 2.0, 3.0], [0, 1, 2]), slice(0, 3), 2)])
        >>> [batch.x.tolist() for batch in span], [part.count for part in span.alike()]
        ([[1.0, 2.0], [3.0]], [1, 1])
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self.count = sum(len(chunk) for chunk in chunks)

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order."""
        return (chunk[i] for chunk in self._chunks for i in range(len(chunk)))

    def after(self, count: int) -> "Span":
        """Return the batches without the first `count`."""
        chunks = []
        for chunk in self._chunks:
            gone = min(count, len(chunk))
            count -= gone
            if gone < len(chunk):
                chunks.append(chunk.part(gone, len(chunk) - gone) if gone else chunk)
        return Span(chunks)

    def alike(self) -> "Iterator[Span]":
        """Yield spans of batches of the same sizes, shapes and dtypes, as long as may be."""
        parts = [part for chunk in self._chunks for part in chunk.alike()]
        for _, like in itertools.groupby(enumerate(parts), _kind):
            yield Span([part for _, part in like])

    # ------------------------------------------------------------------ of batches that are alike

    @property
    def size(self) -> int:
        """The number of examples in a batch."""
        return self._chunks[0].batch_size

    @property
    def columns(self) -> Columns:
        """Arrays of a batch's dtypes and of its shapes, but for the first axis."""
        return self._chunks[0].arrays.columns

    @property
    def layout(self) -> Layout:
        """Which of them are inputs, targets and weights."""
        return self._chunks[0].arrays.layout

    def feeder(self, shard: slice, targets: Sequence[Any]) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays; see `Chunk.feeder`."""
        chunks = self._chunks
        if len(chunks) == 1:
            return chunks[0].feeder(shard, targets)

        def feed(i: int) -> None:
            chunks[i].feeder(shard, targets)(0)

        return feed


def _kind(numbered: tuple[int, Chunk]) -> Any:
    """Return what is the same of chunks that one feeder serves: single batches that are alike."""
    number, chunk = numbered
    kinds = [(each.shape[1:], each.dtype) for each in chunk.arrays.columns]
    return chunk.batch_size, chunk.arrays.layout, kinds, number if len(chunk) > 1 else None


def _gatherer(array: np.ndarray[Any, Any], target: Any) -> Callable[..., Any]:
    """Return what takes rows as `array.take` does, into a target of any dtype."""
    take: Callable[..., Any] = array.take
    if array.dtype == target.dtype:
        return take
    staging: Any = np.empty(target.shape, array.dtype)

    def convert(rows: Any, axis: int, out: Any, mode: str) -> None:
        take(rows, axis, staging, mode)
        np.copyto(out, staging, "unsafe")

    return convert


# ---------------------------------------------------------------------------- where they come from


Check = Callable[[Arrays], Arrays]


class PassesOfRows:
    """Batches of the rows of arrays, of which nothing is read but which rows they are.

    Args:
        transform: Which rows.
        arrays: The arrays.
        otherwise: Gives the batches one by one, where not all examples are well.

    Attributes:
        example: Arrays of the shapes and dtypes that the data have, but for their first axis.
        given: How many batches of this pass were read.
        most_ahead: How many are read at once where nobody asks for another number.
        is_lent: Whether a batch's memory may be written to when the next one is read.
    """

    is_lent = False

    def __init__(
        self, transform: Transform, arrays: Arrays, otherwise: "Callable[[], Passes] | None" = None
    ) -> None:
        self._transform, self._arrays, self._otherwise = transform, arrays, otherwise
        self._size = transform.batch_size or 1
        self.example = arrays.rows(slice(0, self._size))
        self.most_ahead = max(1, _ROWS_AHEAD // self._size)
        self._read: Callable[[int], Rows] | None = None
        self.given = 0

    def checked(self, check: Check) -> "Passes":
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
            self._read = self._transform.open_rows(self._transform.begin())
        elif self.given == self._transform.cardinality:
            self.close()
        return self._read is not None

    def read(self, most: int) -> Chunk | None:
        """Return which rows the next batches are."""
        if not self.has_next() or self._read is None:
            return None
        rows = self._read(most)
        self.given += -(-count_of(rows) // self._size)
        if not isinstance(rows, slice):
            self._arrays = self._arrays.contiguous()
        return Chunk(self._arrays, rows, self._size)

    def close(self) -> None:
        """Leave the pass."""
        self._read, self.given = None, 0


class PassesOfBatches:
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

    def checked(self, check: Check) -> "Passes":
        """Return the data as a function leaves them: each batch when it comes."""
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

    def read(self, most: int) -> Chunk | None:
        """Return the next batch."""
        batch, self._first = self._first or self._next(), None
        if batch is None:
            return None
        batch = self._checked(batch)
        self.given += 1
        return Chunk(batch, slice(0, batch.size), batch.size)

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


Passes = PassesOfRows | PassesOfBatches


def passes_of(
    data: Iterable[Any], for_what: str, class_weight: Mapping[int, float] | None
) -> Passes:
    """Return the batches that data give."""

    def one_by_one() -> Passes:
        return PassesOfBatches(data, for_what, class_weight)

    transform = data._transform if isinstance(data, Pipeline) else None
    slices = None if transform is None else transform.batched_slices
    if transform is None or slices is None or not transform.cardinality:
        return one_by_one()
    try:
        arrays = adapt_batch(slices.rows(slice(None)), for_what, class_weight)
    except ValueError:
        return one_by_one()  # The batch that is wrong is named.
    return PassesOfRows(transform, arrays, one_by_one)
