"""The iterator of a worker over batches of its own, in steps that all workers take together."""

import itertools
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any

from mirrored.data.dataset_iterators import Position
from mirrored.distribute.input import DistributedDataset, DistributedIterator
from mirrored.distribute.sharding import Join, Sharing


class KeptBatches:
    """Batches for a replica each, of which those since a mark can be taken again.

    Args:
        batches: The batches.

    Attributes:
        latest: The latest one; None: there was none.
    """

    def __init__(self, batches: Generator[Any]) -> None:
        self._batches = batches
        self._left: Iterator[Any] = batches
        # Since the latest mark, if that is still used; else those of the latest step.
        self._taken: list[Any] = []
        self._is_marked: Callable[[], Any] = lambda: None
        self.latest: Any = None

    def take(self, count: int) -> list[Any]:
        """Return the next batches, at most as many."""
        if self._is_marked() is None:
            self._taken.clear()
        batches = list(itertools.islice(self._left, count))
        self._taken += batches
        self.latest = batches[-1] if batches else self.latest
        return batches

    def mark(self, *, before_latest: bool) -> Callable[[], None]:
        """Return a function that goes back to here; what it goes back over is in memory.

        Args:
            before_latest: Whether it goes back over what was taken last, too.
        """
        if not before_latest:
            self._taken.clear()

        def back() -> None:
            self._left = itertools.chain(self._taken, self._left)
            self._taken = []

        self._is_marked = weakref.ref(back)
        return back

    def close(self) -> None:
        """Close what gives the batches."""
        self._batches.close()


class WorkerIterator(DistributedIterator):
    """Gives each replica of this worker a batch in every step, until no worker has any left.

    Args:
        dataset: The dataset.
        steps: As for `DistributedIterator`.
        batches: The batches that `steps` takes.
    """

    def __init__(
        self,
        dataset: DistributedDataset,
        steps: Callable[[Sharing, Join, Position], Generator[list[Any]]],
        batches: KeptBatches,
    ) -> None:
        super().__init__(dataset, steps)
        self._batches = batches

    def mark(self) -> Callable[[], None]:
        """Return a function that goes back to the position, on the same pass over the data."""
        take_back = self._batches.mark(before_latest=bool(self._ahead))

        def back() -> None:
            self._lists.close()
            self._ahead.clear()
            take_back()
            self._open(self._position)  # For the replicas that this worker has now.

        return back

    def close(self) -> None:
        """Close the dataset's iterator and its background threads."""
        super().close()
        self._batches.close()
