"""How a global batch is cut into one part a replica.

Sizes differ by at most one, so no replica waits for a larger shard than it must.
"""

import itertools

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError


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
            "A batch of 0 or more examples is split over 1 or more replicas. Received: "
            f"{examples} examples, {replicas} replicas."
        )
    share, rest = divmod(examples, replicas)
    return [share + (replica < rest) for replica in range(replicas)]


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
