"""Shared memory of the workers of a host: for barriers and for sums.

Each has a part that it alone writes, and all read. Two counters a worker say how far it is. All go
through stages, which take two halves of the memory in turn: a worker begins a stage when all have
finished the one before the last, so that who is quick need not wait for who is slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import ResourceExhaustedError
from mirrored.workers.shared_files import free_bytes, too_little
from mirrored.workers.worker_calls import BYTES

_LEAST = 1 << 12
# Where a part has its two counters, each in a cache line of its own, two calls, and the vectors:
# two that the worker gives, and what it has added up.
_ARRIVED, _DONE, _CALLS, _VECTORS = 0, 128, 256, 256 + 2 * BYTES
_GIVEN, _PARTS = 2, 3
_VIEWS = 64  # How many sizes of vectors have views that are kept.


class HostMemory:
    """The memory of the workers of one host.

    Args:
        mpi: The module of MPI.
        local: The communicator of the workers of this host.
        capacity: The bytes of a vector that are added up at a time, a multiple of 16.

    Attributes:
        capacity: This number, which is smaller where there is little memory.

    Raises:
        ResourceExhaustedError: There is too little memory that can be shared.
    """

    def __init__(self, mpi: Any, local: Any, capacity: int) -> None:
        self.rank, self.count = local.Get_rank(), local.Get_size()
        self.capacity = _fitting(mpi, local, capacity)
        size = _VECTORS + _PARTS * self.capacity
        self._window = mpi.Win.Allocate_shared(size, 1, comm=local)
        # Stores and loads may be made from now on; `Sync` orders them.
        self._window.Lock_all(mpi.MODE_NOCHECK)
        parts = [
            memoryview(self._window.Shared_query(rank)[0]).cast("B") for rank in range(self.count)
        ]
        self._arrived = [part[_ARRIVED : _ARRIVED + 8].cast("Q") for part in parts]
        self._done = [part[_DONE : _DONE + 8].cast("Q") for part in parts]
        self._calls = [[part[at : at + BYTES] for part in parts] for at in (_CALLS, _CALLS + BYTES)]
        self._vectors = [
            np.frombuffer(part[_VECTORS:], np.uint8).reshape(_PARTS, -1) for part in parts
        ]
        self._views: dict[Any, tuple[list[NDArray[Any]], list[NDArray[Any]]]] = {}
        # What the memory held before means nothing: all begin when all have written.
        self._arrived[self.rank][0] = self._done[self.rank][0] = 0
        self._window.Sync()
        local.Barrier()
        self._window.Sync()

    def say(self, stage: int, call: bytes) -> None:
        """Write what this worker does in a stage, for the others of its host."""
        self._calls[stage % 2][self.rank][:] = call

    def said(self, stage: int) -> list[bytes]:
        """Return what each worker of the host does, once all have arrived."""
        return [bytes(part) for part in self._calls[stage % 2]]

    def vectors(
        self, stage: int, dtype: np.dtype[Any], size: int
    ) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Return a vector of each worker that it gives in a stage, and one for what it adds up."""
        key = (stage % _GIVEN, dtype, size)
        if key not in self._views:
            if len(self._views) >= _VIEWS:
                self._views.clear()
            nbytes = size * dtype.itemsize
            terms, added = (
                [vectors[part][:nbytes].view(dtype) for vectors in self._vectors]
                for part in (stage % _GIVEN, _GIVEN)
            )
            self._views[key] = terms, added
        return self._views[key]

    def arrive(self, stage: int) -> None:
        """Say that what this worker gives in a stage is there."""
        self._window.Sync()  # All that was written before is seen before the counter is.
        self._arrived[self.rank][0] = stage

    def finish(self, stage: int) -> None:
        """Say that this worker has read what others gave in a stage, and added up its part."""
        self._window.Sync()
        self._done[self.rank][0] = stage

    def have_arrived(self, stage: int) -> bool:
        """Return whether all have arrived in a stage; what they gave may be read then."""
        for counter in self._arrived:
            if counter[0] < stage:
                return False
        self._window.Sync()
        return True

    def have_finished(self, stage: int) -> bool:
        """Return whether all have finished a stage; what it took of the memory is free again."""
        for counter in self._done:
            if counter[0] < stage:
                return False
        self._window.Sync()
        return True

    def absent(self, stage: int) -> list[int]:
        """Return which workers of the host have not arrived in a stage."""
        return [rank for rank, counter in enumerate(self._arrived) if counter[0] < stage]

    def unfinished(self, stage: int) -> list[int]:
        """Return which workers of the host have not finished a stage."""
        return [rank for rank, counter in enumerate(self._done) if counter[0] < stage]

    def close(self) -> None:
        """Give the memory back; all workers of the host do so."""
        for views in (self._arrived, self._done, self._calls, self._vectors, self._views):
            views.clear()
        self._window.Unlock_all()
        self._window.Free()


def _fitting(mpi: Any, local: Any, capacity: int) -> int:
    """Return how much there is room for: writing more than there is would end the process."""
    free = free_bytes()
    if free is None:
        free = capacity * 2 * _PARTS * local.Get_size()
    # Half of what is free, for all vectors of all workers.
    mine = min(capacity, free // (2 * _PARTS * local.Get_size())) // 64 * 64
    least = int(local.allreduce(mine, op=mpi.MIN))
    if least < _LEAST:
        raise ResourceExhaustedError(too_little(free, local.Get_size(), 2 * _PARTS * _LEAST))
    return least
