"""Global batches by number: cut from arrays, with a shorter last one, or as a stream gave them.

What a batch is does not depend on how many replicas will share it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from mirrored.data.adapters import Arrays, Columns, check_batch_size


class Batches(ABC):
    """Some global batches, each an `Arrays`."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of batches."""

    @abstractmethod
    def __getitem__(self, index: int) -> Arrays:
        """Return one batch."""

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order."""
        return (self[index] for index in range(len(self)))

    @abstractmethod
    def size(self, index: int) -> int:
        """Return the number of examples in a batch."""

    @abstractmethod
    def columns(self, index: int) -> Columns:
        """Return arrays of a batch's dtypes and of its shapes, but for the first axis."""

    @abstractmethod
    def alike(self, first: int, most: int) -> int:
        """Return how many batches from one on, at most so many, differ in their values alone.

        Args:
            first: The number of the one that the others are compared with.
            most: At least 1.
        """

    @abstractmethod
    def feeder(self, first: int, rows: slice, targets: Columns) -> Callable[[int], None]:
        """Return what writes some rows of a batch into arrays, called with its number from `first`.

        Args:
            first: The number of the batch that is called 0.
            rows: Which rows of the batch, a slice.
            targets: Arrays for inputs, targets and weights; None for what is not wanted.
        """


class ArrayBatches(Batches):
    """The global batches of one pass over arrays.

    Args:
        arrays: The examples.
        batch_size: The number of examples in a global batch; the last one has what remains.
        order: The rows to take, integers of shape (rows,) in [0, examples); None takes all of
            them as they are, as views.

    Raises:
        ValueError: `batch_size` is not a positive integer, or `order` not a vector of rows.

    Example:
        >>> import numpy as np
        >>> from mirrored.data.adapters import adapt
        >>> from mirrored.data.batches import ArrayBatches
        >>> arrays = adapt([10.0, 20.0, 30.0], [0, 1, 2])
        >>> [batch.x.tolist() for batch in ArrayBatches(arrays, 2, np.array([2, 0, 1]))]
        [[30.0, 10.0], [20.0]]
    """

    def __init__(self, arrays: Arrays, batch_size: int, order: np.ndarray | None = None) -> None:
        self._arrays = arrays
        self._batch_size = check_batch_size(batch_size)
        self._order = None if order is None else _check_order(order, arrays.size)
        self._size = arrays.size if self._order is None else len(self._order)

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-self._size // self._batch_size)

    def __getitem__(self, index: int) -> Arrays:
        """Return one batch, as copies of its rows, or views where they are in order."""
        if not 0 <= index < len(self):
            raise IndexError(f"There are {len(self)} batches. Received: index {index}.")
        begin, arrays = index * self._batch_size, self._arrays
        end = begin + self.size(index)
        if self._order is None:
            return arrays.rows(begin, end)
        rows = self._order[begin:end]
        return Arrays(
            arrays.x.take(rows, axis=0),
            None if arrays.y is None else arrays.y.take(rows, axis=0),
            None if arrays.sample_weight is None else arrays.sample_weight.take(rows, axis=0),
            end - begin,
        )

    def size(self, index: int) -> int:
        """Return the number of examples in a batch."""
        return min(self._batch_size, self._size - index * self._batch_size)

    def columns(self, index: int) -> Columns:
        """Return the arrays that the batches are cut from."""
        return self._arrays.columns

    def alike(self, first: int, most: int) -> int:
        """Return how many batches are of one size: only the last one may be shorter."""
        is_shorter = self.size(first + most - 1) < self.size(first)
        return most - is_shorter

    def feeder(self, first: int, rows: slice, targets: Columns) -> Callable[[int], None]:
        """Return what writes some rows of a batch into arrays; see `Batches`."""
        step, order = self._batch_size, self._order
        origin, count = first * step + rows.start, rows.stop - rows.start
        if order is None:
            pairs = _pairs(self._arrays.columns, targets)

            def feed_slice(i: int) -> None:
                begin = origin + i * step
                for array, target in pairs:
                    np.copyto(target, array[begin : begin + count], "unsafe")

            return feed_slice
        gathers = [_gatherer(*pair) for pair in _pairs(self._arrays.columns, targets)]

        def feed_rows(i: int) -> None:
            begin = origin + i * step
            taken = order[begin : begin + count]
            for gather, target in gathers:
                # "clip" lets NumPy write straight into the target; the rows are known to be there.
                gather(taken, 0, target, "clip")

        return feed_rows


class BatchList(Batches):
    """Batches that are there one by one, of any sizes.

    Args:
        batches: The batches.

    Example:
        >>> from mirrored.data.adapters import adapt
        >>> from mirrored.data.batches import BatchList
        >>> batches = BatchList([adapt([1.0, 2.0], [0, 1]), adapt([3.0], [0])])
        >>> batches.size(0), batches.size(1), batches.alike(0, 2)
        (2, 1, 1)
    """

    def __init__(self, batches: Sequence[Arrays]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __getitem__(self, index: int) -> Arrays:
        """Return one batch."""
        return self._batches[index]

    def size(self, index: int) -> int:
        """Return the number of examples in a batch."""
        return self._batches[index].size

    def columns(self, index: int) -> Columns:
        """Return the arrays of the batch."""
        return self._batches[index].columns

    def alike(self, first: int, most: int) -> int:
        """Return how many batches from one on have its sizes, shapes and dtypes."""
        kind = _kind(self._batches[first])
        others = self._batches[first + 1 : first + most]
        return 1 + sum(1 for _ in takewhile(lambda other: _kind(other) == kind, others))

    def feeder(self, first: int, rows: slice, targets: Columns) -> Callable[[int], None]:
        """Return what writes some rows of a batch into arrays; see `Batches`."""
        batches = self._batches

        def feed(i: int) -> None:
            for array, target in _pairs(batches[first + i].columns, targets):
                np.copyto(target, array[rows], "unsafe")

        return feed


@dataclass(frozen=True, slots=True)
class Span:
    """Some batches in a row.

    Attributes:
        batches: The batches that they are among.
        first: The number of the first one.
        count: How many they are.
    """

    batches: Batches
    first: int
    count: int

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order."""
        return (self.batches[self.first + i] for i in range(self.count))

    def split(self, most: int) -> "Iterator[Span]":
        """Yield spans of at most so many batches, in order.

        Args:
            most: At least 1.

        Example:
            >>> from mirrored.data.adapters import adapt
            >>> from mirrored.data.batches import ArrayBatches, Span
            >>> span = Span(ArrayBatches(adapt([1.0, 2.0, 3.0], [0, 1, 2]), 1), 0, 3)
            >>> [(each.first, each.count) for each in span.split(2)]
            [(0, 2), (2, 1)]
        """
        for start in range(0, self.count, most):
            count = min(most, self.count - start)
            yield Span(self.batches, self.first + start, count)

    def parts(self) -> "Iterator[Span]":
        """Yield spans of batches of the same sizes, shapes and dtypes, as long as may be."""
        begin, end = self.first, self.first + self.count
        while begin < end:
            count = self.batches.alike(begin, end - begin)
            yield Span(self.batches, begin, count)
            begin += count


def _kind(batch: Arrays) -> list[Any]:
    return [None if each is None else (each.shape, each.dtype) for each in batch.columns]


def _pairs(columns: Columns, targets: Columns) -> list[tuple[Any, Any]]:
    pairs = zip(columns, targets, strict=True)
    return [(array, target) for array, target in pairs if target is not None]


def _gatherer(array: np.ndarray[Any, Any], target: Any) -> tuple[Callable[..., Any], Any]:
    """Return a function that takes rows as `array.take` does, and what it writes them to."""
    if array.dtype == target.dtype:
        return array.take, target
    staging: Any = np.empty(target.shape, array.dtype)
    take: Any = array.take

    def convert(rows: Any, axis: int, out: Any, mode: str) -> None:
        take(rows, axis, staging, mode)
        np.copyto(out, staging, "unsafe")

    return convert, target


def _check_order(order: np.ndarray, size: int) -> np.ndarray:
    rows = np.asarray(order)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            "`order` must be a vector of integers. "
            f"Received: an array with shape {rows.shape} and dtype {rows.dtype}."
        )
    if len(rows) and not (rows.min() >= 0 and rows.max() < size):
        raise ValueError(
            f"`order` must hold rows in [0, {size}). "
            f"Received: rows from {rows.min()} to {rows.max()}."
        )
    return rows
