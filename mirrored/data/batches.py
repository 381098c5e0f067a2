"""Global batches, which are rows of arrays that are gathered where a step wants them.

What a batch is does not depend on how many replicas will share it.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrored.data.arrays import Arrays, Columns, Rows, count_of


@dataclass(frozen=True, slots=True)
class Block:
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

    def part(self, first: int, count: int) -> "Block":
        """Return some of the batches.

        Args:
            first: The number of the first one.
            count: How many.
        """
        begin = first * self.batch_size
        end = min(begin + count * self.batch_size, count_of(self.rows))
        if isinstance(self.rows, slice):
            return replace(self, rows=slice(self.rows.start + begin, self.rows.start + end))
        return replace(self, rows=self.rows[begin:end])

    def alike(self) -> "Iterator[Block]":
        """Yield the whole batches, and then a shorter one."""
        whole = count_of(self.rows) // self.batch_size
        if whole:
            yield self.part(0, whole)
        if whole < len(self):
            last = self.part(whole, 1)
            yield replace(last, batch_size=count_of(last.rows))

    def feeder(self, shard: slice, targets: Columns) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays, called with the batch's number.

        Args:
            shard: Which rows of the batch.
            targets: Arrays for inputs, targets and weights; None for what is not wanted.
        """
        step, count, rows = self.batch_size, shard.stop - shard.start, self.rows
        pairs = zip(self.arrays.columns, targets, strict=True)
        wanted = [(array, target) for array, target in pairs if target is not None]
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
        blocks: The batches.

    Attributes:
        count: How many they are.

    Example:
        >>> from mirrored.data.arrays import adapt
        >>> from mirrored.data.batches import Block, Span
        >>> span = Span([Block(adapt([1.0, 2.0, 3.0], [0, 1, 2]), slice(0, 3), 2)])
        >>> [batch.x.tolist() for batch in span], [part.count for part in span.alike()]
        ([[1.0, 2.0], [3.0]], [1, 1])
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self.count = sum(len(block) for block in blocks)

    def __iter__(self) -> Iterator[Arrays]:
        """Yield the batches in order."""
        return (block[i] for block in self._blocks for i in range(len(block)))

    def after(self, count: int) -> "Span":
        """Return the batches without the first `count`."""
        blocks = []
        for block in self._blocks:
            gone = min(count, len(block))
            count -= gone
            if gone < len(block):
                blocks.append(block.part(gone, len(block) - gone) if gone else block)
        return Span(blocks)

    def alike(self) -> "Iterator[Span]":
        """Yield spans of batches of the same sizes, shapes and dtypes, as long as may be."""
        parts = [part for block in self._blocks for part in block.alike()]
        for _, like in itertools.groupby(enumerate(parts), _kind):
            yield Span([part for _, part in like])

    # ------------------------------------------------------------------ of batches that are alike

    @property
    def size(self) -> int:
        """The number of examples in a batch."""
        return self._blocks[0].batch_size

    @property
    def columns(self) -> Columns:
        """Arrays of a batch's dtypes and of its shapes, but for the first axis."""
        return self._blocks[0].arrays.columns

    def feeder(self, shard: slice, targets: Columns) -> Callable[[int], None]:
        """Return what gathers some rows of a batch into arrays; see `Block.feeder`."""
        blocks = self._blocks
        if len(blocks) == 1:
            return blocks[0].feeder(shard, targets)

        def feed(i: int) -> None:
            blocks[i].feeder(shard, targets)(0)

        return feed


def _kind(numbered: tuple[int, Block]) -> Any:
    """Return what is the same of blocks that one feeder serves: single batches that are alike."""
    number, block = numbered
    kinds = [
        None if each is None else (each.shape[1:], each.dtype) for each in block.arrays.columns
    ]
    return block.batch_size, kinds, number if len(block) > 1 else None


def _gatherer(array: np.ndarray[Any, Any], target: Any) -> Callable[..., Any]:
    """Return what takes rows as `array.take` does, into a target of any dtype."""
    take: Any = array.take
    if array.dtype == target.dtype:
        return take  # type: ignore[no-any-return]
    staging: Any = np.empty(target.shape, array.dtype)

    def convert(rows: Any, axis: int, out: Any, mode: str) -> None:
        take(rows, axis, staging, mode)
        np.copyto(out, staging, "unsafe")

    return convert
