"""How a global batch is cut into one part a replica.

Sizes differ by at most one, so no replica waits for a larger shard than it must. A batch is a
structure of arrays, all with as many rows as it has examples.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._arguments import explained
from mirrored._numbers import counted, even_sizes
from mirrored.data.arrays import Rows, count_of, rows_from
from mirrored.errors import InvalidArgumentError
from mirrored.ops.host_tensor import HostRows

# For each replica, its arrays of some steps.
Parts = Sequence[Sequence[Any]]
# From these, how many examples come before each in each step, and how many all replicas have in it,
# to what those steps are given.
Join = Callable[[Parts, Sequence[tuple[int, ...]], Sequence[int]], list[Any]]
# How many replicas share a batch, the number of the first one here, and how many are here.
Sharing = tuple[int, int, int]
# From batches and who shares them to what the next step is given.
Take = Callable[[Iterator[Any], Sharing, Join], Any]


@explained
def split_sizes(examples: int, replicas: int) -> list[int]:
    """Return how many of `examples` each replica gets: sizes differ by at most one, larger first.

    Raises:
        InvalidArgumentError: There is no replica, or a negative number of examples.

    Example:
        >>> from mirrored.distribute import split_sizes
        >>> split_sizes(7, 3), split_sizes(1, 2)
        ([3, 2, 2], [1, 0])
    """
    if replicas < 1 or examples < 0:
        raise InvalidArgumentError(
            "A batch of 0 or more examples can be split over 1 or more replicas. Received: "
            f"{counted(examples, 'example')}, {counted(replicas, 'replica')}."
        )
    return even_sizes(examples, replicas)


@explained
def shard_bounds(examples: int, replicas: int) -> list[tuple[int, int]]:
    """Return where each replica's part of a batch begins and ends.

    Example:
        >>> from mirrored.distribute import shard_bounds
        >>> shard_bounds(7, 3)
        [(0, 3), (3, 5), (5, 7)]
    """
    ends = list(itertools.accumulate(split_sizes(examples, replicas)))
    return list(zip([0, *ends[:-1]], ends, strict=True))


class Sharding(NamedTuple):
    """Where the parts of a batch are that replicas of this process get.

    Attributes:
        slices: The rows of each part, of those that this process has.
        starts: How many examples come before each.
        examples: How many the whole batch has.
        of_all: How many each replica has, of all processes.
    """

    slices: tuple[slice, ...]
    starts: tuple[int, ...]
    examples: int
    of_all: tuple[int, ...]

    def cut(self, array: Any) -> list[Any]:
        """Return each replica's rows of an array, as views."""
        if self.slices[0] == slice(0, self.examples) and len(self.slices) == 1:
            return [array]
        return [array[rows] for rows in self.slices]

    @property
    def sizes(self) -> list[int]:
        """How many examples each replica gets."""
        return [rows.stop - rows.start for rows in self.slices]


@functools.lru_cache
def sharding_of(examples: int, replicas: int, first: int, here: int) -> Sharding:
    """Return where the parts of a batch of so many examples are, of all replicas or of some.

    Args:
        examples: How many examples the batch has.
        replicas: How many replicas share it.
        first: The number of the first replica whose part is asked for.
        here: Of how many replicas parts are asked for.
    """
    return _sharding(split_sizes(examples, replicas), first, here)


@functools.lru_cache
def sharding_of_own(sizes: tuple[int, ...], first: int, here: int) -> Sharding:
    """Return where the parts of a batch are of which this process has its own replicas' rows alone.

    Args:
        sizes: How many examples each replica has, of all processes.
        first: The number of the first replica whose part is asked for.
        here: Of how many replicas parts are asked for.
    """
    return _sharding(sizes, first, here, absent=sum(sizes[:first]))


def _sharding(sizes: Sequence[int], first: int, here: int, absent: int = 0) -> Sharding:
    """Return where parts of some sizes are, where a number of rows before them are absent."""
    ends = [0, *itertools.accumulate(sizes)]
    starts = tuple(ends[first : first + here])
    own = zip(starts, ends[first + 1 :], strict=False)
    slices = tuple(slice(start - absent, end - absent) for start, end in own)
    return Sharding(slices, starts, ends[-1], tuple(sizes))


def cut(batches: Iterator[Any], sharing: Sharing, join: Join) -> Any:
    """Return the next batch, cut into a part for each replica.

    Args:
        batches: The global batches.
        sharing: Who shares them.
        join: Makes one value of the parts of each array.

    Raises:
        ValueError: It is no batch.
    """
    batch = next(batches)
    size = examples_of(batch)
    sharding = sharding_of(size, *sharing)
    return _nest.map_structure(
        lambda leaf: _joined(join, sharding.cut(leaf), sharding.starts, size), batch
    )


def cut_rows(
    leaves: Sequence[NDArray[Any]], rows: Rows, size: int, sharing: Sharing, join: Join
) -> list[tuple[Any, ...]]:
    """Return the batches that rows of arrays are, cut as `cut` does it, and not gathered yet.

    Args:
        leaves: The arrays.
        rows: Their rows, of all batches.
        size: How many rows a batch has; the last one may have fewer.
        sharing: Who shares them.
        join: Makes one value of the parts of each array.
    """
    whole, rest = divmod(count_of(rows), size)
    batches: list[tuple[Any, ...]] = []
    for begin, count, examples in ((0, whole, size), (whole * size, 1, rest)):
        if count and examples:
            alike = rows_from(rows, begin, count * examples)
            batches += _cut_alike(leaves, alike, examples, sharing, join)
    return batches


def _cut_alike(
    leaves: Sequence[NDArray[Any]], rows: Rows, size: int, sharing: Sharing, join: Join
) -> list[tuple[Any, ...]]:
    """Return batches of one size, cut all at once.

    A function called for each of them would take as long as a short step.
    """
    count, sharding = count_of(rows) // size, sharding_of(size, *sharing)
    parts: list[Parts]  # For each array.
    if isinstance(rows, slice):
        grids = [leaf[rows].reshape(count, size, *leaf.shape[1:]) for leaf in leaves]
        parts = [[list(grid[:, shard]) for shard in sharding.slices] for grid in grids]
    else:
        grid = rows.reshape(count, size)
        numbers = [list(grid[:, shard]) for shard in sharding.slices]
        parts = [[_rows_of(leaf, rows_of_shard) for rows_of_shard in numbers] for leaf in leaves]
    starts, sizes = [sharding.starts] * count, [size] * count
    return list(zip(*(join(shards, starts, sizes) for shards in parts), strict=True))


def _rows_of(leaf: NDArray[Any], numbers: Sequence[NDArray[np.int64]]) -> list[HostRows]:
    return list(map(HostRows, zip(itertools.repeat(leaf), numbers, strict=False)))


def give_out(batches: Iterator[Any], sharing: Sharing, join: Join) -> Any:
    """Return a separate batch per replica; empty batches after the end of the dataset.

    Args:
        batches: Batches for one replica.
        sharing: Who shares them.
        join: Makes one value of the replicas' arrays.

    Raises:
        ValueError: One is no batch, or they differ in structure.
    """
    parts = [next(batches)]
    sizes = [examples_of(parts[0])]
    replicas, first, here = sharing
    while len(parts) < here:
        following = next(batches, None)
        if following is None:
            following = _nest.map_structure(lambda leaf: leaf[:0], parts[0])
        parts.append(following)
        sizes.append(examples_of(following))
    # Those of other processes are not known: they are taken for as many as the first one's here.
    before = first * sizes[0]
    starts = tuple(itertools.accumulate(sizes[:-1], initial=before))
    total = before + sum(sizes) + (replicas - first - here) * sizes[0]
    return _nest.map_structure(
        lambda *leaves: _joined(join, leaves, starts, total), *parts, label="replica"
    )


def _joined(join: Join, arrays: Sequence[Any], starts: tuple[int, ...], examples: int) -> Any:
    """Return what one step is given of the replicas' arrays."""
    return join([[array] for array in arrays], [starts], [examples])[0]


def examples_of(batch: Any) -> int:
    """Return the number of examples in a batch; raises ValueError where it is none."""
    # A dataset, as an element of `window` is, has no rows to share.
    shapes: list[Any] = [getattr(leaf, "shape", ()) for leaf in _nest.flatten(batch)]
    if not shapes or () in shapes:
        raise unbatched(shapes)
    size: int = shapes[0][0]
    if any(shape[0] != size for shape in shapes):
        raise ValueError(
            "All parts of a batch must have the same number of examples. Received: parts of "
            f"shapes {list(shapes)}. If they are one example, call "
            "`dataset.batch(global_batch_size)` first."
        )
    return size


def unbatched(shapes: Sequence[Any]) -> ValueError:
    """Return the error for a dataset whose elements have no batch axis.

    Args:
        shapes: The shapes of an element's arrays.
    """
    return ValueError(
        "Unable to get batched dataset from the input dataset. `batch` needs to be called on the "
        f"input dataset. Received: elements of shapes {list(shapes)}. Call "
        "`dataset.batch(global_batch_size)` first."
    )
