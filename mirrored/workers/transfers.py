"""Messages in flight between workers, sent without waiting.

What is not over says who is missing; MPI's own collectives would not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Transfers:
    """Messages that were begun.

    Args:
        mpi: The module of MPI.
        comm: The communicator that they go through.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi = mpi
        self._comm = comm
        # The rank that each goes to or comes from, and what it is in: memory that MPI reads and
        # writes stays for as long as it may do so, however the call of this worker ends.
        self._under_way: list[tuple[int, Any, NDArray[Any]]] = []

    def send(self, array: NDArray[Any], rank: int, tag: int) -> None:
        """Begin to send a vector."""
        data = array.view(np.uint8)
        if data.size:
            request = self._comm.Isend([data, self._mpi.BYTE], dest=rank, tag=tag)
            self._under_way.append((rank, request, data))

    def receive(self, array: NDArray[Any], rank: int, tag: int) -> None:
        """Begin to receive a vector."""
        data = array.view(np.uint8)
        if data.size:
            request = self._comm.Irecv([data, self._mpi.BYTE], source=rank, tag=tag)
            self._under_way.append((rank, request, data))

    def over(self) -> bool:
        """Return whether all was sent and received."""
        self._under_way = [sent for sent in self._under_way if not sent[1].Test()]
        return not self._under_way

    def ranks(self) -> list[int]:
        """Return to and from whom something is under way."""
        return sorted({rank for rank, _, _ in self._under_way})
