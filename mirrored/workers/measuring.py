"""Measures the speed of sums over workers by size, and checks their results.

All of them measure at the same time, since each takes part in every sum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mirrored.backends.host import available_host_memory
from mirrored.backends.selftest.sums import known_sum, known_values
from mirrored.workers.worker import Workers

_FLOAT32 = np.dtype(np.float32)
# Seconds that a turn takes at least, so that the clock's steps do not show; but not more calls.
_TURN, _MOST_CALLS = 2e-2, 1000
_WARM_UP = 3
_ARRAYS = 6  # As large as the sum that a worker takes part in, at a time.


class Measured(NamedTuple):
    """Sums of one size.

    Attributes:
        elements: How many float32 each worker adds.
        seconds: The time of a sum.
        wrong: How many elements of all workers' results are not the known sum.
    """

    elements: int
    seconds: float
    wrong: int


def largest_size(workers: Workers) -> int | None:
    """Return the most bytes that each worker has the memory to add; None: any number.

    Args:
        workers: The workers, which all call it.

    Raises:
        WorkerError: Another worker failed, ended, or made another call.

    Example:
        >>> from mirrored.workers.worker import Workers
        >>> largest_size(Workers()) > 1 << 10
        True
    """
    free = available_host_memory()
    on_host = workers.hosts.count(workers.hosts[workers.rank])
    mine = None if free is None else free // (on_host * _ARRAYS)
    known = [size for size in workers.gather(mine, "memory") if size is not None]
    return min(known, default=None)


def measure(workers: Workers, nbytes: Sequence[int], *, turns: int = 7) -> Iterator[Measured]:
    """Yield what sums of float32 cost, size after size; all workers call it.

    Each turn takes the time of many sums, of which the median counts.

    Args:
        workers: The workers.
        nbytes: How many bytes each adds.
        turns: How many turns.

    Raises:
        WorkerError: Another worker failed, ended, or made another call.

    Example:
        >>> from mirrored.workers.worker import Workers
        >>> [(row.elements, row.wrong) for row in measure(Workers(), [64, 400])]
        [(16, 0), (100, 0)]
    """
    for size in nbytes:
        yield _measured(workers, max(1, size // _FLOAT32.itemsize), turns)


def _measured(workers: Workers, count: int, turns: int) -> Measured:
    mine, total = known_values(workers.rank, count, _FLOAT32), np.empty(count, _FLOAT32)

    def timed(times: int) -> float:
        workers.barrier("a turn")
        start = time.perf_counter()
        for _ in range(times):
            workers.sum_in_order(mine, total, "a sum that is measured")
        return (time.perf_counter() - start) / times

    for _ in range(_WARM_UP):
        once = timed(1)
    # What all go by is what worker 0 saw.
    times = workers.gather(min(_MOST_CALLS, max(1, round(_TURN / once))), "how often")[0]
    seconds = float(np.median([timed(times) for _ in range(turns)]))
    wrong = int(np.count_nonzero(total != known_sum(workers.count, count, _FLOAT32)))
    return Measured(count, seconds, sum(workers.gather(wrong, "wrong sums")))
