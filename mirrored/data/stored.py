"""Data that are too large to be read at once: arrays in files, which are read block by block.

A pass reads each row once. Where the order is random, it is that of blocks of rows that lie
together, and that of the rows of many blocks among each other.
"""

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from mmap import ALLOCATIONGRANULARITY
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored.data.arrays import Arrays, Check, Rows, adapt, check_cardinality, with_class_weights
from mirrored.data.batches import Span, check_of
from mirrored.data.columns import arrays_in, is_frame, is_sparse, leaves_in, to_array
from mirrored.data.passes import Passes, PassSeeds

_AT_ONCE = 64 << 20  # Bytes that are read at once; their rows are shuffled among each other.
_BLOCK = 1 << 20  # Bytes that lie together: a disk reads them about as fast as more.


def is_stored(value: Any) -> bool:
    """Return whether a value is an array in a file, or another one that slices alone read."""
    if isinstance(value, np.ndarray):
        return isinstance(value, np.memmap) and value.ndim > 0
    if is_sparse(value):  # Whole, it may be larger than memory.
        return True
    if any(hasattr(value, name) for name in ("numpy", "__dlpack__", "__array_interface__")):
        return False
    has_rows = hasattr(value, "dtype") and hasattr(value, "__getitem__")
    shape = getattr(value, "shape", None)
    return has_rows and isinstance(shape, tuple) and len(shape) > 0 and not is_frame(value)


def adapt_all(x: Any, y: Any = None, sample_weight: Any = None, *, for_what: str) -> "Given":
    """Return what was given as arrays; what is in files, and large, stays there.

    Args:
        x: The inputs, as for `adapt`; further arrays in files, or what has a shape, a dtype and
            rows to slice.
        y: The targets, likewise, or None.
        sample_weight: The weights, likewise, or None.
        for_what: The method that asks, named in errors.

    Raises:
        ValueError: They are none that can be used.
    """
    plain = np.ndarray, type(None)
    nested = [part for part in (x, y, sample_weight) if type(part) not in plain]
    stored = [leaf for part in nested for leaf in leaves_in(part) if is_stored(leaf)]
    if not stored:
        return adapt(x, y, sample_weight, for_what=for_what)

    def leaf_of(value: Any, name: str) -> Any:
        if not is_stored(value):
            return to_array(value, name)
        if not is_large:
            whole = slice(0, value.shape[0])
            return to_array(value, name) if is_sparse(value) else _rows(value, [whole])
        return value.tocsr() if is_sparse(value) else value

    is_large = sum(_row_bytes(leaf) * leaf.shape[0] for leaf in stored) > _AT_ONCE
    parts = {"x": x, "y": y, "sample_weight": sample_weight}
    parts = {name: arrays_in(part, name, leaf_of) for name, part in parts.items()}
    if not is_large:
        return adapt(**parts, for_what=for_what)
    check_cardinality(parts)
    return Stored(tuple(parts.values()), 0, stored[0].shape[0], for_what)


@dataclass(frozen=True, slots=True)
class Stored:
    """Inputs, targets and weights of which some are in files.

    Attributes:
        parts: The three of them: structures of arrays, of which some are sliced to be read.
        begin: The first row of these.
        size: How many rows there are from there on.
        for_what: The method that asks, named in errors.
        class_weight: A weight for each integer label, or None.
    """

    parts: tuple[Any, ...]
    begin: int
    size: int
    for_what: str
    class_weight: Mapping[int, float] | None = None

    def rows(self, which: slice) -> "Stored":
        """Return some of the rows, of which nothing is read."""
        return replace(self, begin=self.begin + which.start, size=which.stop - which.start)

    @property
    def row_bytes(self) -> int:
        """How many bytes a row has in all arrays together."""
        return sum(_row_bytes(leaf) for leaf in self._leaves)

    @property
    def _leaves(self) -> list[Any]:
        return [leaf for leaf in _nest.flatten(self.parts) if leaf is not None]

    def block_rows(self) -> int:
        """Return how many rows lie together: whole chunks of a file that has such."""
        rows = max(1, _BLOCK // max(1, self.row_bytes))
        largest = max(filter(is_stored, self._leaves), key=_row_bytes)
        chunks = getattr(largest, "chunks", None)
        first = chunks[0] if isinstance(chunks, tuple) and chunks else 1
        chunk = int(first[0] if isinstance(first, tuple) else first)
        return -(-rows // chunk) * chunk

    def read(self, which: Sequence[slice]) -> Arrays:
        """Return some rows.

        Args:
            which: Their numbers, counted from `begin`.

        Raises:
            ValueError: They cannot be used, or are not there any more.
        """
        moved = [slice(self.begin + part.start, self.begin + part.stop) for part in which]
        x, y, weight = (
            _nest.map_structure(lambda leaf: None if leaf is None else _rows(leaf, moved), part)
            for part in self.parts
        )
        arrays = adapt(x, y, weight, for_what=self.for_what)
        if self.class_weight is None:
            return arrays
        return with_class_weights(arrays, self.class_weight)

    def blocks(self) -> list[slice]:
        """Return rows that lie together, in order, counted from `begin`."""
        rows, end = self.block_rows(), self.begin + self.size
        first = self.begin // rows * rows
        edges = [self.begin, *range(first + rows, end, rows), end]
        return [
            slice(begin - self.begin, stop - self.begin)
            for begin, stop in itertools.pairwise(edges)
        ]


class PassesOfStored(Passes):
    """Batches of data that are read block by block, pass after pass without end.

    Args:
        data: The data.
        batch_size: The number of examples in a batch.
        shuffled: Whether each pass is in another order, by the global seed.
    """

    def __init__(self, data: Stored, batch_size: int, *, shuffled: bool) -> None:
        self._data, self._size, self._shuffled = data, batch_size, shuffled
        self.most_ahead = max(1, _AT_ONCE // max(1, data.row_bytes * batch_size))
        self.example = data.read([slice(0, min(batch_size, data.size))])
        self._seeds = PassSeeds()
        self._checks: list[Check] = []
        self._runs: Iterator[list[slice]] | None = None
        self._span: Span | None = None  # Read, and not given out yet.

    def checked(self, check: Check) -> "PassesOfStored":
        """Return the data as a function leaves them: what is read, when it is read."""
        check(self.example)
        self._checks.append(check)
        return self

    @property
    def is_open(self) -> bool:
        """Whether a pass was begun."""
        return self._runs is not None

    def has_next(self) -> bool:
        """Return True: a pass follows another one."""
        if self._runs is None:
            blocks = self._data.blocks()
            if self._shuffled:
                blocks = [blocks[i] for i in self._seeds.begin().permutation(len(blocks))]
            self._runs = runs_of(blocks, self.most_ahead * self._size)
        return True

    def read(self, most: int) -> Span | None:
        """Return the next batches, of those that were read together."""
        span = self._span or self._next()
        part = span.part(0, min(most, span.count))
        self._span = span.after(part.count) if part.count < span.count else None
        self.batches_read += part.count
        return part

    def close(self) -> None:
        """Leave the pass."""
        self._runs = self._span = None
        self.batches_read = 0

    def place(self) -> list[int]:
        """Return the position in the pass, and what its order was drawn from."""
        return [self.is_open, self.batches_read, *self._seeds.place(self.is_open)]

    def go_to(self, place: Sequence[int]) -> None:
        """Continue from a position; of the blocks before it nothing is read."""
        is_open, count, *drawn = place
        self.close()
        self._seeds.go_to(drawn)
        if not is_open:
            return
        self.has_next()
        runs, left = iter(self._runs or ()), count
        for run in runs:
            rows = sum([part.stop - part.start for part in run])
            batches = -(-rows // self._size)
            if left < batches:
                self._runs = itertools.chain([run], runs)
                break
            left -= batches
            if self._seeds.generator is not None:
                self._seeds.generator.permutation(1)  # The order of these rows.
        if left:
            span = self._next()
            self._span = span.after(left)
        self.batches_read = count

    def facts(self) -> dict[str, int]:
        """Return the number of rows, that of a batch, and a checksum of two rows."""
        check = check_of(self.example.columns, slice(0, self.example.size))
        return {"rows": self._data.size, "check": check, "batch_size": self._size}

    def _next(self) -> Span:
        self.has_next()
        run = next(self._runs or iter(()), None)
        if run is None:
            self.close()
            return self._next()
        try:
            arrays = self._data.read(run)
            for check in self._checks:
                arrays = check(arrays)
        except ValueError as error:
            raise ValueError(
                f"Batch {self.batches_read} of a pass, or a later one: {error}"
            ) from error
        rows: Rows = slice(0, arrays.size)
        if self._seeds.generator is not None:
            rows = self._seeds.generator.permutation(arrays.size)
        return Span(arrays, rows, self._size)


Given = Arrays | Stored


def weighed(data: Given, class_weight: Mapping[int, float]) -> Given:
    """Return the data with the weight of its label as each example's weight; 1 without one."""
    if isinstance(data, Arrays):
        return with_class_weights(data, class_weight)
    with_class_weights(data.read([slice(0, 1)]), class_weight)  # What is wrong is said at once.
    return replace(data, class_weight=class_weight)


def split_validation(arrays: Given, fraction: Any) -> tuple[Given, Given]:
    """Set the last examples aside for validation, before any shuffling."""
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if not (is_number and 0 < fraction < 1):
        raise ValueError(
            "`validation_split` must be a number between 0 and 1. "
            f"Received: validation_split={fraction!r}."
        )
    split = math.floor(arrays.size * (1.0 - fraction))
    if split in (0, arrays.size):
        raise ValueError(
            f"Training data contains {arrays.size} samples, which is not sufficient to split it "
            "into a validation and training set as specified by "
            f"`validation_split={fraction}`. Either provide more data, or a different value for "
            "the `validation_split` argument."
        )
    return arrays.rows(slice(0, split)), arrays.rows(slice(split, arrays.size))


def runs_of(blocks: Sequence[slice], most: int) -> Iterator[list[slice]]:
    """Yield blocks of a number of rows; a longer block is divided.

    Example:
        >>> from mirrored.data.stored import runs_of
        >>> list(runs_of([slice(4, 8), slice(0, 4)], 6))
        [[slice(4, 8, None), slice(0, 2, None)], [slice(2, 4, None)]]
    """
    run: list[slice] = []
    room = most
    for block in blocks:
        begin = block.start
        while begin < block.stop:
            stop = min(begin + room, block.stop)
            if run and run[-1].stop == begin:
                run[-1] = slice(run[-1].start, stop)
            else:
                run.append(slice(begin, stop))
            room, begin = room - (stop - begin), stop
            if not room:
                yield run
                run, room = [], most
    if run:
        yield run


def _row_bytes(leaf: Any) -> int:
    return int(getattr(leaf.dtype, "itemsize", 8) * math.prod(leaf.shape[1:]))


def _rows(leaf: Any, which: Sequence[slice]) -> NDArray[Any]:
    """Return rows of an array in memory of its own, read slice by slice."""
    _check_file(leaf)
    count = sum(part.stop - part.start for part in which)
    rows: NDArray[Any] | None = None
    begin = 0
    for part in which:
        some = leaf[part.start : part.stop]
        rows_here = np.asarray(some.toarray() if is_sparse(some) else some)
        stop = begin + part.stop - part.start
        if len(rows_here) != stop - begin:
            raise ValueError(
                f"The rows {part.start} to {part.stop - 1} of the data no longer exist. Received: "
                f"{len(rows_here)} of them, from {type(leaf).__name__} with "
                f"shape={tuple(leaf.shape)}. Do not change a file while it is being read."
            )
        if rows is None:
            rows = np.empty((count, *rows_here.shape[1:]), rows_here.dtype)
        rows[begin:stop] = rows_here
        begin = stop
    return np.empty((0, *leaf.shape[1:])) if rows is None else rows


def _check_file(leaf: Any) -> None:
    """Raise where a mapped file has become shorter: reading what is gone would end the process."""
    mapped, name = getattr(leaf, "_mmap", None), getattr(leaf, "filename", None)
    if not isinstance(leaf, np.memmap) or mapped is None or name is None:
        return
    needed = leaf.offset - leaf.offset % ALLOCATIONGRANULARITY + len(mapped)
    there = os.stat(name).st_size if os.path.exists(name) else needed  # A deleted one stays mapped.
    if there < needed:
        raise ValueError(
            f"The file of the data became shorter while it was read. Received: {name}, of {there} "
            f"bytes instead of {needed}. Do not change a file while it is being read."
        )
