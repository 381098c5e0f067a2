"""Sums over hosts by messages: each host adds a part of the vector, in the order of hosts.

What it adds up it then sends to all others, so that each has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.workers.notices import Transfers
from mirrored.workers.ordered_sums import add_in_order, bounds
from mirrored.workers.worker_calls import BYTES

_CALL, _GIVEN, _ADDED = 1, 2, 3  # Tags.

# Waits until its first argument says that it is over; the second one says which hosts are missing.
Wait = Callable[[Callable[[], bool], Callable[[], Sequence[int]]], None]


class BetweenHosts:
    """Meets and adds up with one worker of each other host.

    Args:
        mpi: The module of MPI.
        comm: The communicator of these workers, whose ranks are the numbers of their hosts.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self.host, self.count = comm.Get_rank(), comm.Get_size()
        self._others = [host for host in range(self.count) if host != self.host]
        self._said = np.zeros((self.count, BYTES), np.uint8)
        self._saying = Transfers(mpi, comm)
        self._moving = Transfers(mpi, comm)
        self._scratch = np.empty(0, np.uint8)

    def begin_to_meet(self, call: bytes) -> None:
        """Begin to tell the others what this worker does, and to hear what they do."""
        self._said[self.host] = np.frombuffer(call, np.uint8)
        for other in self._others:
            self._saying.receive(self._said[other], other, _CALL)
        for other in self._others:
            self._saying.send(self._said[self.host], other, _CALL)

    def meet(self, wait: Wait) -> list[bytes]:
        """Return what the worker of each host does."""
        wait(self._saying.over, self._saying.ranks)
        return [part.tobytes() for part in self._said]

    def begin_sum(self, values: NDArray[Any]) -> None:
        """Begin to send to each host the part of a vector that it adds up."""
        parts = bounds(values.size, self.count)
        begin, end = parts[self.host]
        need = (end - begin) * values.itemsize * self.count
        if self._scratch.size < need:
            self._scratch = np.empty(need, np.uint8)
        for other in self._others:
            self._moving.receive(self._received(other, values), other, _GIVEN)
        for other in self._others:
            begin, end = parts[other]
            self._moving.send(values[begin:end], other, _GIVEN)

    def finish_sum(self, values: NDArray[Any], wait: Wait) -> None:
        """Write the sum over the hosts in the place of the vector."""
        wait(self._moving.over, self._moving.ranks)
        parts = bounds(values.size, self.count)
        begin, end = parts[self.host]
        mine = values[begin:end]
        add_in_order(
            [
                mine if host == self.host else self._received(host, values)
                for host in range(self.count)
            ],
            mine,
        )
        for other in self._others:
            begin, end = parts[other]
            self._moving.receive(values[begin:end], other, _ADDED)
        for other in self._others:
            self._moving.send(mine, other, _ADDED)
        wait(self._moving.over, self._moving.ranks)

    def is_idle(self) -> bool:
        """Return whether all messages have arrived."""
        return self._saying.over() and self._moving.over()

    def _received(self, host: int, values: NDArray[Any]) -> NDArray[Any]:
        begin, end = bounds(values.size, self.count)[self.host]
        nbytes = (end - begin) * values.itemsize
        return self._scratch[host * nbytes : (host + 1) * nbytes].view(values.dtype)
