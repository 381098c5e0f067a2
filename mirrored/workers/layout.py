"""The hosts of all workers, and the communicators between them.

Nobody waits here without a limit: all say that they have come before MPI's own calls are made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mirrored.errors import WorkerTimeoutError
from mirrored.workers.notices import Transfers

_OFTEN = 0.001

T = TypeVar("T")
# Calls an operation of MPI that all workers of a communicator call, and returns its result.
Together = Callable[[Any, Callable[[], Any]], Any]


@dataclass(frozen=True)
class Layout:
    """Who is where.

    Attributes:
        rank: The number of this worker.
        hosts: The hosts of all, by rank.
        neighbours: The ranks of the workers of this host, in order; this one is among them.
        lanes: How many workers of each host send sums to other hosts, each a part of them.
        leaders: The ranks of those that this worker sends to and hears of, by host; none: it is
            not one of them, or there is one host.
        library: The MPI that connects them.
        everyone: The communicator of all, for calls.
        notices: The communicator of all, for notices.
        local: That of the workers of this host.
        lane: That of the leaders; None: there are none.
    """

    rank: int
    hosts: tuple[str, ...]
    neighbours: tuple[int, ...]
    lanes: int
    leaders: tuple[int, ...]
    everyone: Any
    notices: Any
    local: Any
    lane: Any

    @property
    def local_rank(self) -> int:
        """The number of this worker among those of its host."""
        return self.neighbours.index(self.rank)

    @property
    def on_several_hosts(self) -> bool:
        """Whether not all workers share memory."""
        return len(self.neighbours) < len(self.hosts)

    def close(self, *, failed: bool) -> None:
        """Give the communicators back; all workers do so.

        Args:
            failed: Whether a call has failed: then others may have sent what nobody received. MPI
                would give it to whoever connects next and gets the same communicator.
        """
        for comm in (None if failed else self.lane, self.local, self.notices, self.everyone):
            if comm is not None:
                comm.Free()


def lay_out(mpi: Any, deadline: float) -> Layout:
    """Return who is where, once all workers have come here.

    Args:
        mpi: The module of MPI.
        deadline: The seconds that others have to come.

    Raises:
        WorkerTimeoutError: They did not come.
    """
    _meet(mpi, mpi.COMM_WORLD, deadline)
    return arrange(mpi, mpi.COMM_WORLD.Dup(), at_once)


def at_once(comm: Any, operation: Callable[[], T]) -> T:
    """Return the result of an operation of MPI, where all workers are known to be alive."""
    return operation()


def arrange(mpi: Any, everyone: Any, together: Together) -> Layout:
    """Return who is where among the workers of a communicator; all of them call it.

    It makes few communicators: Open MPI 5.0.11 crashes where a worker dies while another one makes
    one (`ompi_comm_revoke_local`, in its call `MPI_Comm_dup`).

    Args:
        mpi: The module of MPI.
        everyone: The communicator, which nobody else uses.
        together: Calls each operation of MPI.
    """
    notices = together(everyone, everyone.Dup)
    rank = everyone.Get_rank()
    local = together(everyone, lambda: everyone.Split_type(mpi.COMM_TYPE_SHARED, key=rank))
    neighbours = tuple(together(local, lambda: local.allgather(rank)))
    hosts = together(everyone, lambda: everyone.allgather((_host(mpi), neighbours)))
    # Hosts are in the order of their first workers.
    groups = sorted({group for _, group in hosts})
    lanes = min(len(group) for group in groups)
    number = neighbours.index(rank)
    is_leader = len(groups) > 1 and number < lanes
    lane = None
    if len(groups) > 1:
        color = number if is_leader else mpi.UNDEFINED
        lane = together(everyone, lambda: everyone.Split(color, key=groups.index(neighbours)))
    return Layout(
        rank=rank,
        hosts=tuple(name for name, _ in hosts),
        neighbours=neighbours,
        lanes=lanes,
        leaders=tuple(group[number] for group in groups) if is_leader else (),
        everyone=everyone,
        notices=notices,
        local=local,
        lane=lane if is_leader else None,
    )


def _host(mpi: Any) -> str:
    # Where a launcher only pretends that there are several hosts, it alone knows their names.
    return os.environ.get("PMI_HOSTNAME") or str(mpi.Get_processor_name())


def _meet(mpi: Any, world: Any, deadline: float) -> None:
    """Return when all have arrived; MPI would wait indefinitely for a missing worker."""
    # The last tag that there is, which programs of their own hardly use.
    tag = world.Get_attr(mpi.TAG_UB)
    rank, nothing = world.Get_rank(), np.zeros(1, np.uint8)
    others = [other for other in range(world.Get_size()) if other != rank]
    arriving, sent = Transfers(mpi, world), Transfers(mpi, world)
    for other in others:
        arriving.receive(np.zeros(1, np.uint8), other, tag)
        sent.send(nothing, other, tag)
    began = time.monotonic()
    while not (arriving.over() and sent.over()):
        waited = time.monotonic() - began
        if waited > deadline:
            absent = arriving.ranks() or sent.ranks()
            raise WorkerTimeoutError(
                f"Not all workers connected with worker {rank} by its deadline. Received: "
                f"{waited:.4g} seconds, and no word from {', '.join(map(str, absent))} of "
                f"{world.Get_size()} workers. Every worker must create a strategy for several "
                "workers, or be started by `python -m mirrored.run`.",
                worker=absent[0],
                what="connecting",
                reason="timeout",
                missing=absent,
            )
        time.sleep(_OFTEN)
