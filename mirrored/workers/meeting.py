"""Calls of all workers: through shared memory on a host, by messages between hosts.

All say there what they do, and add up vectors, in stages that all go through together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import WorkerError
from mirrored.workers.host_memory import HostMemory
from mirrored.workers.layout import Layout, Together
from mirrored.workers.notices import Transfers
from mirrored.workers.ordered_sums import add_in_order, slices_of
from mirrored.workers.waiting import Waiting
from mirrored.workers.worker_calls import BYTES, Call

# Bytes of a vector that are added up at a time. What several workers write and read soon after each
# other is best where it still is in a cache; messages are best long. docs/howto/several-hosts.md
# has the figures.
_ON_ONE_HOST, _ON_SEVERAL = 1 << 20, 1 << 22
# Up to these numbers of bytes and of workers, each worker of a host adds the whole vector, and not
# a part of it, which others would have to wait for and copy.
_SMALL, _PAIR = 1 << 14, 2


class Meeting:
    """Where one worker meets all others.

    Args:
        mpi: The module of MPI.
        layout: Who is where.
        waiting: How it waits for them.
        together: Calls each operation of MPI; see `arrange`.
    """

    def __init__(self, mpi: Any, layout: Layout, waiting: Waiting, together: Together) -> None:
        self._layout = layout
        self._waiting = waiting
        self._stage = 0
        # Of a sum on one host that is not over: its last stage, the terms, their place, the sum.
        self._late: tuple[int, list[NDArray[Any]], NDArray[Any], NDArray[Any]] | None = None
        capacity = _ON_SEVERAL if layout.on_several_hosts else _ON_ONE_HOST
        local, everyone, is_alone = layout.local, layout.everyone, len(layout.neighbours) == 1
        self._memory: HostMemory | None = together(
            local, lambda: None if is_alone else HostMemory(mpi, local, capacity)
        )
        own = capacity if self._memory is None else self._memory.capacity
        self._capacity = int(together(everyone, lambda: everyone.allreduce(own, op=mpi.MIN)))
        self._between = None if layout.lane is None else BetweenHosts(mpi, layout.lane)

    def meet(self, call: Call) -> None:
        """Return when all workers are in this call.

        Raises:
            WorkerError: Another worker is in another call, failed, or has ended.
        """
        said = call.encode()
        self._begin_stage(call, said)
        if self._memory is not None:
            self._arrive(self._memory, call, said)
        if self._between is not None:
            self._hear(self._between, call)
        if self._memory is not None:
            self._memory.finish(self._stage)

    def sum(self, call: Call, vector: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the sum of a vector over all workers.

        Raises:
            WorkerError: Another worker is in another call, failed, or has ended.
        """
        step = max(1, self._capacity // vector.itemsize)
        said: bytes | None = call.encode()
        for at in range(0, max(1, vector.size), step):
            terms, added = vector[at : at + step], out[at : at + step]
            self._begin_stage(call, said)
            whole = out if at + step >= vector.size else None  # With its last part.
            if self._memory is None:
                np.copyto(added, terms)
                self._sum_over_hosts(call, said, added)
            else:
                self._sum_on_host(self._memory, call, said, terms, added, whole)
            said = None  # Once is enough.
        self._late = None

    @property
    def is_on_one_host(self) -> bool:
        """Whether all workers share memory."""
        return self._memory is not None and self._memory.count == len(self._layout.hosts)

    def finish_late(self) -> NDArray[Any] | None:
        """Finish a sum that an error ended, and return it; None: not all had given their terms.

        Others may have its result and have gone on. They do not give more than the terms of their
        next sum, which leave those of this one as they are.
        """
        if self._late is None or self._memory is None:
            return None
        stage, terms, out, whole = self._late
        if not self._memory.have_arrived(stage):
            return None
        add_in_order(terms, out)
        return whole

    def is_anything_under_way(self) -> bool:
        """Return whether there are messages that did not arrive, of a call that failed."""
        return self._between is not None and not self._between.is_idle()

    def close(self) -> None:
        """Give the memory back; all workers do so."""
        if self._memory is not None:
            self._memory.close()

    # ------------------------------------------------------------------ stages

    def _begin_stage(self, call: Call, said: bytes | None) -> None:
        """Begin the next stage, when all of the host have finished the one before the last."""
        if said is not None and self._between is not None:
            # Before anybody of the host is waited for, so that others know who has come.
            self._between.begin_to_meet(said)
        memory, before = self._memory, self._stage - 1
        self._stage += 1
        if memory is not None:
            self._waiting.until(
                lambda: memory.have_finished(before),
                call,
                lambda: self._ranks(memory.unfinished(before)),
            )

    def _arrive(self, memory: HostMemory, call: Call, said: bytes | None) -> None:
        """Say what this worker does, and wait until all of the host have."""
        stage = self._stage
        if said is not None:
            memory.say(stage, said)
        memory.arrive(stage)
        self._waiting.until(
            lambda: memory.have_arrived(stage), call, lambda: self._ranks(memory.absent(stage))
        )
        if said is not None:
            self._check(call, said, memory.said(stage), self._layout.neighbours)

    def _sum_on_host(
        self,
        memory: HostMemory,
        call: Call,
        said: bytes | None,
        vector: NDArray[Any],
        out: NDArray[Any],
        whole: NDArray[Any] | None,
    ) -> None:
        dtype, size, stage = vector.dtype, vector.size, self._stage
        terms, added = memory.vectors(stage, dtype, size)
        np.copyto(terms[memory.rank], vector)
        alone = self.is_on_one_host
        if alone and whole is not None:
            self._late = stage, terms, out, whole
        self._arrive(memory, call, said)
        if alone and (memory.count == _PAIR or vector.nbytes <= _SMALL):
            add_in_order(terms, out)
            memory.finish(stage)
            return
        parts = slices_of(size, self._layout.lanes)
        if memory.rank < len(parts):
            own = parts[memory.rank]
            mine = added[memory.rank][own]
            add_in_order([term[own] for term in terms], mine)
            self._sum_over_hosts(call, said, mine)
        memory.finish(stage)
        self._waiting.until(
            lambda: memory.have_finished(stage),
            call,
            lambda: self._ranks(memory.absent(stage)),
            lambda: self._ranks(memory.unfinished(stage)),
        )
        for rank, part in enumerate(parts):
            np.copyto(out[part], added[rank][part])

    def _sum_over_hosts(self, call: Call, said: bytes | None, values: NDArray[Any]) -> None:
        between = self._between
        if between is None:
            return
        between.begin_sum(values)
        if said is not None:  # What is another call's is not looked at.
            self._hear(between, call)
        between.finish_sum(values, self._wait(call, have_come=True))

    # ------------------------------------------------------------------ who is there

    def _hear(self, between: BetweenHosts, call: Call) -> None:
        self._check(call, call.encode(), between.meet(self._wait(call)), self._layout.leaders)

    def _wait(self, call: Call, *, have_come: bool = False) -> Wait:
        """Return what waits for other hosts, to come to a call or, where they have, to go on."""

        def wait(over: Callable[[], bool], missing: Callable[[], Sequence[int]]) -> None:
            def ranks() -> list[int]:
                return [self._layout.leaders[host] for host in missing()]

            self._waiting.until(over, call, tuple if have_come else ranks, ranks)

        return wait

    def _ranks(self, numbers: Sequence[int]) -> list[int]:
        """Return the ranks of workers of this host."""
        return [self._layout.neighbours[number] for number in numbers]

    def _check(self, call: Call, mine: bytes, said: Sequence[bytes], ranks: Sequence[int]) -> None:
        """Raise an error where another worker does something else."""
        for rank, theirs in zip(ranks, said, strict=True):
            if theirs == mine:
                continue
            other = Call.decode(theirs)
            if not other.agrees(call):
                layout = self._layout
                raise WorkerError(
                    "All workers must make the same calls in the same order. Received: worker "
                    f"{layout.rank} on host {layout.hosts[layout.rank]} is in {call}, and worker "
                    f"{rank} on host {layout.hosts[rank]} is in {other}. Look for code that "
                    "depends on a worker's number, host or data.",
                    worker=rank,
                    host=layout.hosts[rank],
                    what=call.label,
                    reason=f"{other}, not {call}",
                )


_CALL, _GIVEN, _ADDED = 1, 2, 3  # Tags.

# Waits until its first argument says that it is over; the second one says which hosts are missing.
Wait = Callable[[Callable[[], bool], Callable[[], Sequence[int]]], None]


class BetweenHosts:
    """Meets and adds up with one worker of each other host, by messages.

    Each host adds a part of the vector, in the order of hosts, and sends it to all others.

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
        parts = slices_of(values.size, self.count)
        need = values[parts[self.host]].nbytes * self.count
        if self._scratch.size < need:
            self._scratch = np.empty(need, np.uint8)
        for other in self._others:
            self._moving.receive(self._received(other, values), other, _GIVEN)
        for other in self._others:
            self._moving.send(values[parts[other]], other, _GIVEN)

    def finish_sum(self, values: NDArray[Any], wait: Wait) -> None:
        """Write the sum over the hosts into the vector."""
        wait(self._moving.over, self._moving.ranks)
        parts = slices_of(values.size, self.count)
        mine = values[parts[self.host]]
        add_in_order(
            [
                mine if host == self.host else self._received(host, values)
                for host in range(self.count)
            ],
            mine,
        )
        for other in self._others:
            self._moving.receive(values[parts[other]], other, _ADDED)
        for other in self._others:
            self._moving.send(mine, other, _ADDED)
        wait(self._moving.over, self._moving.ranks)

    def is_idle(self) -> bool:
        """Return whether all messages have arrived."""
        return self._saying.over() and self._moving.over()

    def _received(self, host: int, values: NDArray[Any]) -> NDArray[Any]:
        nbytes = values[slices_of(values.size, self.count)[self.host]].nbytes
        return self._scratch[host * nbytes : (host + 1) * nbytes].view(values.dtype)
