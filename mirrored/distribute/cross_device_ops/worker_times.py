"""How long each worker takes for its own work, so that a slow one is known by its name.

In a step all workers wait for the slowest one: only their own time, without waiting, shows which
it is.
"""

from collections.abc import Sequence
from statistics import median
from time import perf_counter

from mirrored._logging import logger
from mirrored.workers import Workers

# A step of training has one sum.
_SUMS = 100
# A worker is called slow that takes so many times as long as the others, and seconds longer.
_TIMES, _SECONDS = 2.0, 0.1


class WorkerTimes:
    """Clocks of all workers, which stop while they wait for each other in sums.

    Args:
        workers: The workers.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._began: float | None = None
        self._sums = 0
        self._recent = 0.0
        self._total = 0.0
        self._told: set[int] = set()

    def stop(self) -> None:
        """Note that this worker has done its part, and waits for the others now."""
        if self._began is not None:
            seconds = perf_counter() - self._began
            self._recent += seconds
            self._total += seconds
            self._sums += 1

    def go_on(self) -> None:
        """Note that a sum is there; after a number of them all workers look at their times."""
        if self._sums >= _SUMS:
            self._look()
        self._began = perf_counter()

    def take(self) -> list[float]:
        """Return the seconds that each worker took since the last call, and reset them."""
        seconds, self._total = self._total, 0.0
        return self._workers.gather(seconds, "how long workers took")

    def _look(self) -> None:
        seconds, self._recent, self._sums = self._recent, 0.0, 0
        times = self._workers.gather(seconds, "how long steps took")
        for rank in slow_ones(times):
            if rank in self._told or not self._workers.is_chief:
                continue
            self._told.add(rank)
            others = median([*times[:rank], *times[rank + 1 :]])
            logger.warning(
                "Worker %d on host %s is slow, and all others wait for it. Its part of the last "
                "%d sums took %.2f seconds, the part of the others %.2f. Check what else runs on "
                "that host, or assign fewer replicas to it.",
                *(rank, self._workers.hosts[rank], _SUMS, times[rank], others),
            )


def slow_ones(seconds: Sequence[float]) -> list[int]:
    """Return the numbers of the workers that took twice as long as the others, or longer.

    Args:
        seconds: How long each took.

    Example:
        >>> slow_ones([1.0, 1.25, 3.0, 1.0]), slow_ones([1.0, 1.5]), slow_ones([0.001, 0.005])
        ([2], [], [])
    """
    slow = []
    for rank, own in enumerate(seconds):
        others = [*seconds[:rank], *seconds[rank + 1 :]]
        if others and own >= _TIMES * median(others) and own >= median(others) + _SECONDS:
            slow.append(rank)
    return slow
