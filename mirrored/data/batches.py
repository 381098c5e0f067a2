"""Global batches, which are rows of arrays that are gathered where a step wants them.

What a batch is does not depend on how many replicas will share it. Arrays, and datasets that only
order and batch their rows, give many at a time; other data give one by one what they made.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Rows, count_of, rows_from


class Span:
    """Batches in a row: rows of the same arrays, or such spans one after the other.

    The batches of the same arrays are alike, but for the last, which may be shorter.

    Args:
        arrays: The arrays.
        rows: Their rows, those of all batches.
        batch_size: The number of rows in a batch.
        sizes: Of one batch of which other processes have other rows: the number of examples that
            each replica of all processes has. None: all processes have the same batches.

    Attributes:
        count: The number of batches.
        is_alike: Whether it is known that all have the same size, shapes and dtypes.

    Example:
        >>> from mirrored.data.arrays import adapt
        >>> from mirrored.data.batches import Span
        >>> span = Span(adapt([1.0, 2.0, 3.0], [0, 1, 2]), slice(0, 3), 2)
        >>> [batch.x.tolist() for batch in span], [part.count for part in span.alike()]
        ([[1.0, 2.0], [3.0]], [1, 1])
    """

    __slots__ = ("_parts", "arrays", "batch_size", "count", "is_alike", "rows", "sizes")

    def __init__(
        self, arrays: Arrays, rows: Rows, batch_size: int, sizes: tuple[int, ...] | None = None
    ) -> None:
        self.arrays, self.rows, self.batch_size, self.sizes = arrays, rows, batch_size, sizes
        self._parts: tuple[Span, ...] = ()
        # This process may have none of the rows of a batch of several.
        whole, rest = (1, 0) if sizes is not None else divmod(count_of(rows), batch_size)
        self.count, self.is_alike = whole + (rest > 0), not rest

    @classmethod
    def joined(cls, parts: "Sequence[Span]") -> "Span":
        """Return spans as one, which has the arrays and sizes of the first.

        Args:
            parts: The spans, of rows of the same arrays each; at least one.
        """
        first = parts[0]
        if len(parts) == 1:
            return first
        span = cls(first.arrays, first.rows, first.batch_size, first.sizes)
        span._parts, span.count = tuple(parts), sum([part.count for part in parts])
        span.is_alike = False
        return span

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order: copies of their rows, or views where they are in order."""
        for part in self._parts or (self,):
            for i in range(part.count):
                yield part.arrays.rows(part.part(i, 1).rows)

    def part(self, first: int, count: int) -> "Span":
        """Return some of the batches that are rows of the same arrays.

        Args:
            first: The number of the first one.
            count: The number of batches.
        """
        size = self.batch_size
        return Span(self.arrays, rows_from(self.rows, first * size, count * size), size, self.sizes)

    def after(self, count: int) -> "Span":
        """Return the batches without the first `count`, which are not all."""
        left = []
        for part in self._parts or (self,):
            gone = min(count, part.count)
            count -= gone
            if gone < part.count:
                left.append(part.part(gone, part.count - gone) if gone else part)
        return Span.joined(left)

    def alike(self) -> "Iterator[Span]":
        """Yield spans of batches of the same sizes, shapes and dtypes, as long as may be."""
        parts = [part for span in self._parts or (self,) for part in span._of_one_size()]
        for _, like in itertools.groupby(enumerate(parts), _kind):
            span = Span.joined([part for _, part in like])
            span.is_alike = True
            yield span

    def _of_one_size(self) -> "list[Span]":
        """Return the whole batches, and then a shorter one."""
        if self.is_alike:
            return [self]
        whole, rest = divmod(count_of(self.rows), self.batch_size)
        last = Span(self.arrays, self.part(whole, 1).rows, rest)
        return [self.part(0, whole), last] if whole else [last]

    # ------------------------------------------------------------------ of batches that are alike

    @property
    def size(self) -> int:
        """The number of examples in a batch, those of other processes included."""
        return self.batch_size if self.sizes is None else sum(self.sizes)

    def check(self) -> int:
        """Return a number by which spans differ that begin with other examples, or in other order.

        It is of the rows' numbers in the first batch, and of what the first and the last one hold.
        """
        return check_of(self.arrays.columns, self.part(0, 1).rows)

    def feeder(self, shard: slice, targets: Sequence[Any]) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays, called with the batch's number.

        Args:
            shard: Which rows of the batch.
            targets: An array for each column.
        """
        if parts := self._parts:
            return lambda i: parts[i].feeder(shard, targets)(0)
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


def _kind(numbered: tuple[int, Span]) -> Any:
    """Return what is the same of spans that one feeder serves: single batches that are alike."""
    number, span = numbered
    kinds = [(column.shape[1:], column.dtype) for column in span.arrays.columns]
    sizes = span.batch_size, span.sizes
    return sizes, span.arrays.layout, kinds, number if span.count > 1 else None


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
