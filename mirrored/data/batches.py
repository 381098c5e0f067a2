"""Cuts arrays into global batches, in the order given and with a shorter last one.

What a batch is does not depend on how many replicas will share it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mirrored.data.adapters import Arrays, check_batch_size


@dataclass(frozen=True, slots=True)
class Batch:
    """A global batch on the host.

    Attributes:
        x: Inputs of shape (size, ...).
        y: Targets of shape (size, ...), or None.
        sample_weight: Weights of shape (size,), or None.
        size: The number of examples, at least 1.
    """

    x: np.ndarray
    y: np.ndarray | None
    sample_weight: np.ndarray | None
    size: int


class Batches:
    """The global batches of one epoch; iterating again gives the same ones again.

    Args:
        arrays: The examples.
        batch_size: The number of examples in a global batch; the last one has what remains.
        order: The rows to take, integers of shape (rows,) in [0, examples); None takes all of
            them as they are, as views.

    Attributes:
        arrays: The examples.
        batch_size: The number of examples in all batches but the last.
        order: The rows in the order in which they are taken; None: as they are.

    Raises:
        ValueError: `batch_size` is not a positive integer, or `order` not a vector of rows.

    Example:
        >>> import numpy as np
        >>> from mirrored.data.adapters import adapt
        >>> from mirrored.data.batches import Batches
        >>> arrays = adapt([10.0, 20.0, 30.0], [0, 1, 2])
        >>> [batch.x.tolist() for batch in Batches(arrays, 2, np.array([2, 0, 1]))]
        [[30.0, 10.0], [20.0]]
    """

    def __init__(self, arrays: Arrays, batch_size: int, order: np.ndarray | None = None) -> None:
        self.arrays = arrays
        self.batch_size = check_batch_size(batch_size)
        self.order = None if order is None else _check_order(order, arrays.size)
        self._size = arrays.size if self.order is None else len(self.order)

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-self._size // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches in order."""
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Batch:
        """Return one batch, as copies of its rows, or views where they are in order."""
        if not 0 <= index < len(self):
            raise IndexError(f"There are {len(self)} batches. Received: index {index}.")
        begin, arrays = index * self.batch_size, self.arrays
        chosen = slice(begin, begin + self.size(index))
        rows = chosen if self.order is None else self.order[chosen]
        return Batch(
            _take(arrays.x, rows),
            None if arrays.y is None else _take(arrays.y, rows),
            None if arrays.sample_weight is None else _take(arrays.sample_weight, rows),
            self.size(index),
        )

    def size(self, index: int) -> int:
        """Return the number of examples in a batch."""
        return min(self.batch_size, self._size - index * self.batch_size)


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

    def split(self, most: int) -> "Iterator[Span]":
        """Yield spans of at most so many batches, in order.

        Args:
            most: At least 1.

        Example:
            >>> from mirrored.data.adapters import adapt
            >>> from mirrored.data.batches import Batches, Span
            >>> span = Span(Batches(adapt([1.0, 2.0, 3.0], [0, 1, 2]), 1), 0, 3)
            >>> [(each.first, each.count) for each in span.split(2)]
            [(0, 2), (2, 1)]
        """
        for start in range(0, self.count, most):
            count = min(most, self.count - start)
            yield Span(self.batches, self.first + start, count)


def _take(array: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


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
