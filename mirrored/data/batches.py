"""Global batches, which are rows of arrays that are gathered where a step wants them.

What a batch is does not depend on how many replicas will share it. Arrays, and datasets that only
order and batch their rows, give many at a time; other data give one by one what they made.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Rows, count_of, rows_from
from mirrored.data.columns import Columns, Layout


@dataclass(frozen=True, slots=True)
class Chunk:
    """Batches that are rows of the same arrays: alike, but for the last, which may be shorter.

    Attributes:
        arrays: The arrays.
        rows: Their rows, those of all batches.
        batch_size: How many rows a batch has.
        sizes: Of one batch of which other processes have other rows: how many examples each replica
            of all processes has. None: all processes have the same batches.
    """

    arrays: Arrays
    rows: Rows
    batch_size: int
    sizes: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """Return the number of batches."""
        if self.sizes is not None:  # This process may have none of its rows.
            return 1
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
        if self.sizes is not None:
            yield self
            return
        whole, rest = divmod(count_of(self.rows), self.batch_size)
        if whole:
            yield self.part(0, whole) if rest else self
        if rest:
            yield replace(self.part(whole, 1), batch_size=rest)

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
        self.count = sum(map(len, chunks))

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order."""
        return (chunk[i] for chunk in self._chunks for i in range(len(chunk)))

    def after(self, count: int) -> "Span":
        """Return the batches without the first `count`."""
        if not count:
            return self
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
        if len(parts) == 1 and parts[0] is self._chunks[0]:
            yield self
            return
        for _, like in itertools.groupby(enumerate(parts), _kind):
            yield Span([part for _, part in like])

    # ------------------------------------------------------------------ of batches that are alike

    @property
    def size(self) -> int:
        """The number of examples in a batch, those of other processes included."""
        sizes = self.sizes
        return self._chunks[0].batch_size if sizes is None else sum(sizes)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """How many each replica has, where each process has rows of its own; see `Chunk`."""
        return self._chunks[0].sizes

    @property
    def columns(self) -> Columns:
        """Arrays of a batch's dtypes and of its shapes, but for the first axis."""
        return self._chunks[0].arrays.columns

    @property
    def layout(self) -> Layout:
        """Which of them are inputs, targets and weights."""
        return self._chunks[0].arrays.layout

    def check(self) -> int:
        """Return a number by which spans differ that begin with other examples, or in other order.

        It is of the rows' numbers in the first batch, and of what the first and the last one hold.
        """
        chunk = self._chunks[0].part(0, 1)
        return check_of(chunk.arrays.columns, chunk.rows)

    def feeder(self, shard: slice, targets: Sequence[Any]) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays; see `Chunk.feeder`."""
        chunks = self._chunks
        if len(chunks) == 1:
            return chunks[0].feeder(shard, targets)

        def feed(i: int) -> None:
            chunks[i].feeder(shard, targets)(0)

        return feed


def check_of(columns: Sequence[Any], rows: Rows) -> int:
    """Return a number by which batches differ that are other rows, or in other order.

    Args:
        columns: Arrays.
        rows: Their rows that are a batch.
    """
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else np.asarray(rows)
    check = zlib.crc32(numbers.astype(np.int64).data)
    for number in (*numbers[:1], *numbers[-1:]):
        for column in columns:
            row = np.ascontiguousarray(column[number])
            if not row.dtype.hasobject:
                check = zlib.crc32(row.tobytes(), check)
    return check


def _kind(numbered: tuple[int, Chunk]) -> Any:
    """Return what is the same of chunks that one feeder serves: single batches that are alike."""
    number, chunk = numbered
    kinds = [(column.shape[1:], column.dtype) for column in chunk.arrays.columns]
    sizes = chunk.batch_size, chunk.sizes
    return sizes, chunk.arrays.layout, kinds, number if len(chunk) > 1 else None


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
