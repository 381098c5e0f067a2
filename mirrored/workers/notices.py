"""Messages that are sent without waiting, and notices that a worker has failed or has ended."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FAILED, ENDED = "failed", "ended"
_LONGEST = 2000  # Characters of a reason that are sent, so that the message needs no partner.
_OFTEN = 0.002


class WorkersLost(Exception):
    """Workers have died, and those that are left have to meet before they go on."""


class Notice(NamedTuple):
    """What a worker tells all others once.

    Attributes:
        kind: `FAILED` or `ENDED`.
        worker: Its rank.
        host: The host that it runs on.
        calls: How many calls it has made; negative: nobody knows.
        step: In which step it failed; None: in none.
        reason: What happened.
        about: The worker that it began with, where this one only heard of it; None: itself.
    """

    kind: str
    worker: int
    host: str
    calls: int
    step: str | None = None
    reason: str = ""
    about: int | None = None


class Notices:
    """Notices as they come in, and those that are sent.

    Args:
        mpi: The module of MPI.
        comm: The communicator that is for them alone.
        sees_deaths: Whether MPI says which processes have died.

    Attributes:
        dead: The workers that have died without a notice.
        failure: The first failure that was told of; None: none was.
        ended: The workers that have come to their end, with what they told.
        first_end: When the first of them told it; infinite: none has.
    """

    def __init__(self, mpi: Any, comm: Any, *, sees_deaths: bool) -> None:
        self.failure: Notice | None = None
        self.dead: Sequence[int] = ()
        self._sees_deaths = sees_deaths
        self.ended: dict[int, Notice] = {}
        self.first_end = math.inf
        self._mpi = mpi
        self._comm = comm
        self._status = mpi.Status()
        self._sent: list[tuple[Any, bytes]] = []
        self._looking = threading.Lock()
        self._sending = threading.Lock()

    def look(self) -> None:
        """Take in what has arrived, unless another thread does."""
        if self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()

    def _look(self) -> None:
        mpi = self._mpi
        try:
            while message := self._comm.Improbe(mpi.ANY_SOURCE, mpi.ANY_TAG, self._status):
                data = bytearray(self._status.Get_count(mpi.BYTE))
                message.Recv([data, mpi.BYTE])
                self._take(Notice(*pickle.loads(data)))
        except mpi.Exception:
            if not self._sees_deaths:
                raise
        if self._sees_deaths and not self.dead:
            failed = self._comm.Get_failed()
            if failed.Get_size():
                ranks = failed.Translate_ranks(None, self._comm.Get_group())
                self.dead = sorted(set(ranks) - self.ended.keys())

    def _take(self, notice: Notice) -> None:
        if notice.kind == ENDED:
            self.ended[notice.worker] = notice
            self.first_end = min(self.first_end, time.monotonic())
        elif self.failure is None:
            self.failure = notice

    def tell(self, notice: Notice) -> None:
        """Send a notice to all others; it waits for none of them."""
        data = pickle.dumps(tuple(notice._replace(reason=notice.reason[:_LONGEST])))
        for other in range(self._comm.Get_size()):
            if other != notice.worker:
                with suppress(self._mpi.Exception):  # It has died.
                    request = self._comm.Isend([data, self._mpi.BYTE], dest=other)
                    with self._sending:
                        self._sent.append((request, data))
        self.deliver(0.0)

    def deliver(self, seconds: float) -> bool:
        """Wait until what was sent is on its way; return whether it is."""
        until = time.monotonic() + seconds
        while True:
            with self._sending:
                # Not `all`, which would stop at the first one that is not done.
                self._sent = [notice for notice in self._sent if not self._is_over(notice[0])]
            if not self._sent or time.monotonic() >= until:
                return not self._sent
            time.sleep(_OFTEN)

    def _is_over(self, request: Any) -> bool:
        """Return whether a notice was sent, or its receiver has died."""
        try:
            return bool(request.Test())
        except self._mpi.Exception:
            return True


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
