"""The workers of a job that MPI connects.

When one of them fails all others hear of it, wherever they wait; and none ends while others rely on
it. Where the process of one dies, the others can go on: a call then has a result on all that are
left, the same as without the death, or on none of them.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.errors import WorkerError, WorkerTimeoutError
from mirrored.workers import replacements
from mirrored.workers.background import Background, PendingSum
from mirrored.workers.launch import abort_at_exit, end_alone, sees_deaths
from mirrored.workers.layout import Layout, Together, arrange, at_once
from mirrored.workers.meeting import Meeting
from mirrored.workers.notices import ENDED, FAILED, Notice, Notices, WorkersLost
from mirrored.workers.ordered_sums import name_of
from mirrored.workers.regrouping import agreed, require_deaths_seen, survivors
from mirrored.workers.waiting import Waiting, processor_ticks, this_process
from mirrored.workers.worker import Workers
from mirrored.workers.worker_calls import ANY, Call

# Seconds that others have to end by themselves, and say why, before the launcher ends them.
PATIENCE = 5.0
_OFTEN = 0.005  # How often a worker that has come to its end looks whether the others have.
T = TypeVar("T")

_LOOKS = 1.0  # Seconds in which a worker that waits uses the processor for a while.
_INTERRUPTED = 130  # The status of a program that Ctrl-C ended, as shells have it.


class MPIWorkers(Workers):
    """Workers that MPI connects; `connect` makes it.

    Args:
        mpi: The module of MPI.
        layout: Who is where, and the communicators.
    """

    def __init__(self, mpi: Any, layout: Layout) -> None:
        super().__init__()
        self._mpi = mpi
        self._lock = threading.Lock()  # One call at a time, whichever thread makes it.
        self._background = Background(self._sum_meanwhile)
        self._calls = 0
        # What MPI's own collectives read and write, for as long as they may do so.
        self._under_way: list[Any] = []
        self._broken: BaseException | None = None
        self._is_closed = False
        self._process = os.getpid()
        self._left: list[Any] = []  # Connections with workers that have died; MPI may use them.
        self._join(layout, at_once)
        self._parent = mpi.Comm.Get_parent()
        if self._parent != mpi.COMM_NULL:
            self._parent.Set_errhandler(mpi.ERRORS_RETURN)
            end_alone()
            rank, hosts, self.welcome = replacements.ask(mpi, self._parent, self.deadline)
            self.place(rank, hosts, 0, on_several_hosts=len({*hosts}) > 1)
            self.generation = -1
        atexit.register(self._at_exit)

    def _join(self, layout: Layout, together: Together) -> None:
        """Connect with the workers of a layout."""
        self.place(
            *(layout.rank, layout.hosts, layout.local_rank),
            on_several_hosts=layout.on_several_hosts,
        )
        self._layout = layout
        self._notices = Notices(self._mpi, layout.notices, sees_deaths=sees_deaths())
        self._waiting = Waiting(self, self._notices)
        self._meeting = Meeting(self._mpi, layout, self._waiting, together)
        local = layout.local
        processes = together(local, lambda: local.allgather(this_process()))
        self._neighbours = dict(zip(layout.neighbours, processes, strict=True))

    # ------------------------------------------------------------------ calls

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> None:
        """Compute `sum_in_order` of two vectors."""

        def add(call: Call) -> NDArray[Any]:
            with np.errstate(all="ignore"):  # Sums that overflow are infinite, as elsewhere.
                self._meeting.sum(call, vector, out)
            return out

        total = self._call("sum", name_of(vector.dtype), vector.size, label, add, of_step=True)
        if total is not out:
            np.copyto(out, total)

    def _begin_sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> PendingSum:
        """Compute `begin_sum` of two vectors."""
        self._require_connection(label)
        return self._background.begin(vector, out, label)

    def _sum_meanwhile(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> None:
        """Make a sum that was begun, on the thread that is there for this."""
        self._waiting.hurries = False
        try:
            self._sum(vector, out, label)
        finally:
            self._waiting.hurries = True

    def gather(self, value: Any, label: str) -> list[Any]:
        """Return a small object of each worker, by rank."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        said, work = ("gather of objects", "", ANY, label), partial(self._gathered, data)
        parts = self._call(*said, work, [data] * self.count)
        return [pickle.loads(part) for part in parts]

    def gather_arrays(self, array: NDArray[Any], label: str) -> list[NDArray[Any]]:
        """Return an array of each worker, by rank; their shapes may differ."""
        data = pickle.dumps(np.asarray(array), pickle.HIGHEST_PROTOCOL)
        kind, work = "gather of arrays", partial(self._gathered, data)
        parts = self._call(kind, array.dtype.name, ANY, label, work, of_step=True)
        return [pickle.loads(part) for part in parts]

    def broadcast(self, arrays: list[NDArray[Any]], label: str) -> None:
        """Write worker 0's values into the arrays of all others."""
        kinds = repr([(part.dtype.name, part.shape) for part in arrays])
        total = sum(part.nbytes for part in arrays)
        # Of arrays that differ the check of their shapes and dtypes does.
        said = f"bytes in {len(arrays)} arrays (check {zlib.crc32(kinds.encode()):08x})"
        received = self._call("broadcast", said, total, label, partial(self._sent, arrays), arrays)
        for array, values in zip(arrays, received, strict=True):
            if not np.may_share_memory(values, array):
                np.copyto(array, values.reshape(array.shape))

    def barrier(self, label: str) -> None:
        """Return when all workers have come here."""
        self._call("barrier", "", ANY, label, self._meeting_of, True)

    def _meeting_of(self, call: Call) -> bool:
        self._meeting.meet(call)
        return True

    def _sent(self, arrays: list[NDArray[Any]], call: Call) -> list[NDArray[Any]]:
        """Return worker 0's arrays."""
        self._meeting.meet(call)
        flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
        for part in flat:
            bytes_of = [part.view(np.uint8), self._mpi.BYTE]
            self._finish(call, self._layout.everyone.Ibcast(bytes_of, root=0), part)
        return flat

    def _gathered(self, data: bytes, call: Call) -> list[bytes]:
        self._meeting.meet(call)
        mpi, everyone = self._mpi, self._layout.everyone
        mine, sizes = np.array([len(data)], np.int64), np.empty(self.count, np.int64)
        request = everyone.Iallgather([mine, mpi.INT64_T], [sizes, mpi.INT64_T])
        self._finish(call, request, mine, sizes)
        ends = np.cumsum(sizes)
        received = np.empty(int(ends[-1]), np.uint8)
        places = (sizes.tolist(), (ends - sizes).tolist())
        request = everyone.Iallgatherv([data, mpi.BYTE], [received, places, mpi.BYTE])
        self._finish(call, request, data, received)
        return [bytes(received[end - n : end]) for n, end in zip(sizes, ends, strict=True)]

    def _finish(self, call: Call, request: Any, *memory: Any) -> None:
        """Wait until one of MPI's collectives is over, that works on some memory."""
        self._under_way.append((request, memory))
        self._waiting.until(request.Test, call, tuple, self._others)
        self._under_way.clear()

    def _others(self) -> list[int]:
        return [rank for rank in range(self.count) if rank != self.rank]

    def _call(
        self,
        kind: str,
        dtype: str,
        size: int,
        label: str,
        work: Callable[[Call], T],
        alone: Any = None,
        *,
        of_step: bool = False,
    ) -> T:
        """Return the result of a call; all others are notified of what it raises.

        Args:
            kind: What is done; so are the next three, see `Call`.
            dtype: The dtype of what is sent.
            size: Its size.
            label: What errors call it.
            work: Does this worker's part.
            alone: The result in a new process that has not joined yet; None: it has none.
            of_step: Whether workers that have died leave a part of a step undone.
        """
        self._background.drain()
        with self._lock:
            self._require_connection(label)
            if self.welcome is not None:
                if alone is None:
                    replacements.leave(
                        "it joins in `fit`, or in a function with `mr.distribute.elastic`, and not "
                        f"in {label}"
                    )
                return cast(T, alone)
            self._calls += 1
            before = self.generation
            call = Call(self._calls, kind, dtype, size, label)
            try:
                is_done, result = self._attempt(call, work)
                while not is_done and not of_step:
                    is_done, result = self._attempt(call, work)
            except self._mpi.Exception as error:
                failure = WorkerError(
                    f"MPI failed in {call} of worker {self.rank} on host {self.hosts[self.rank]}. "
                    f"Received: {error}.",
                    worker=self.rank,
                    host=self.hosts[self.rank],
                    what=label,
                    reason=str(error),
                )
                self.failed(failure)
                raise failure from error
            except BaseException as error:
                self.failed(error)
                raise
        if not is_done:
            self._calls -= 1  # Others may have seen before they made it that they need not.
            self.require(before, str(call))
        return cast(T, result)

    def _attempt(self, call: Call, work: Callable[[Call], T]) -> tuple[bool, Any]:
        """Return whether a call has a result, and it; where not, workers have died in it."""
        is_done, result = False, None
        try:
            self._notices.look()
            self._waiting.check(call)
            result = work(call)
            is_done = True
            can_compute = call.kind == "sum" and self._meeting.is_on_one_host
            if self.on_failure != "raise" and not can_compute:
                self._meeting.meet(call)  # Whoever goes on knows that all have the result.
            return True, result
        except WorkersLost:
            pass
        except WorkerTimeoutError as error:
            if self.on_failure == "raise" or not self._kill(error.missing):
                raise
        except self._mpi.Exception as error:
            codes = (self._mpi.ERR_PROC_FAILED, self._mpi.ERR_PROC_FAILED_PENDING)
            is_death = error.Get_error_class() in (*codes, self._mpi.ERR_REVOKED)
            if self.on_failure == "raise" or not is_death:
                raise
        return self._meet_again(is_done, result)

    # ------------------------------------------------------------------ deaths

    def go_on(self, policy: str, least: int) -> None:
        """Set `on_failure` and the least number of workers, on all workers."""
        if policy != "raise":
            require_deaths_seen(self._mpi, policy)
        if policy == self.on_failure and least == self.least:
            return
        same = "be given the same `on_worker_failure` and `min_workers`"
        self._require_alike((policy, least), "on_worker_failure", same)
        self.on_failure, self.least = policy, least

    def leave(self) -> None:
        """End this process, without which the others go on."""
        self._background.drain()
        self._is_closed = True
        end_alone()
        raise SystemExit(0)

    def _kill(self, ranks: Sequence[int]) -> bool:
        """Kill workers of this host that hang, so that they never write again.

        Return whether they, or others, are dead.

        Args:
            ranks: The numbers of those that are waited for.
        """
        processes = {rank: self._neighbours.get(rank) for rank in ranks}
        ticks = {rank: processor_ticks(process) for rank, process in processes.items()}
        if len(ranks) > 1:  # It is one of them: others that wait look at it all the time.
            time.sleep(_LOOKS)
            spent = {rank: processor_ticks(process) for rank, process in processes.items()}
            ticks = {rank: before for rank, before in ticks.items() if spent[rank] == before}
        if not ticks or None in ticks.values():  # All work, or one is on another host or dead.
            time.sleep(_LOOKS)  # Another worker may have killed it just now.
            self._notices.look()
            return bool(self._notices.dead)
        for rank in ticks:
            logger.warning("Worker %d kills worker %d, which missed the deadline.", self.rank, rank)
            with suppress(ProcessLookupError):  # Another one did.
                os.kill(processes[rank].number, signal.SIGKILL)  # type: ignore[union-attr]
        return True

    def _meet_again(
        self, is_done: bool, result: Any, *, is_agreed: bool = False
    ) -> tuple[bool, Any]:
        """Connect the workers that are left; return whether their call has a result, and it.

        Args:
            is_done: Whether this worker has the result.
            result: The result.
            is_agreed: Whether all have agreed on it that some died.
        """
        old, hosts, comm = self.rank, self.hosts, self._layout.everyone
        began = time.monotonic()
        while True:
            self._left += [self._layout, self._meeting, *self._under_way]
            self._under_way.clear()
            before = comm.Get_size()
            comm = survivors(self._mpi, comm, self.deadline, is_agreed=is_agreed)
            is_agreed = False
            if self.on_failure == "replace":
                self.vacant += before - comm.Get_size()
            if not is_done:  # From now on nobody gives terms to a sum.
                result = self._meeting.finish_late()
                is_done = result is not None
            together = partial(agreed, self._mpi, comm, self.deadline)
            with suppress(WorkersLost):
                self._join(arrange(self._mpi, comm, together), together)
                everyone = self._layout.everyone
                own = (old, self._calls, is_done)
                states = together(everyone, partial(everyone.allgather, own))
                holder = _holder(states)
                if holder is not None:
                    received = together(everyone, partial(everyone.bcast, result, root=holder))
                    if not is_done and self._calls == states[holder][1]:
                        is_done, result = True, received
                break
        end_alone()
        self.generation += 1
        left = {state[0] for state in states}
        gone = " and ".join(
            f"Worker {rank} on host {host} {'was released' if rank in self._released else 'died'}"
            for rank, host in enumerate(hosts)
            if rank not in left
        )
        if self.count < self.least:
            raise WorkerError(
                f"{gone}. {self.count} of the workers are left, and `min_workers` is {self.least}. "
                "Start the program again.",
                reason="workers died",
            )
        if self.is_chief:
            waited = 1000 * (time.monotonic() - began)
            logger.warning(
                "%s. %d worker(s) go on with its work, and met after %.0f ms.",
                *(gone, self.count, waited),
            )
        self._released.clear()
        return is_done, result

    def refill(self, state: Any, refusal: str) -> bool:
        """Start processes in place of the workers that died; return whether they have joined.

        Args:
            state: What worker 0 hands over, which can be pickled.
            refusal: Why no process could join, for the log; empty: one could.
        """
        mpi, before = self._mpi, self.generation
        count, self.vacant, began = self.vacant, 0, time.monotonic()
        deadline = self.deadline / 2  # The others wait for the first worker.
        new, port = None, ""
        if self.is_chief and not refusal:
            new = replacements.start(mpi, count, deadline)
        if new is not None:
            hosts = (*self.hosts, *self.hosts[:1] * count)
            welcomes = [(rank, hosts, state) for rank in range(self.count, len(hosts))]
            if replacements.are_ready(mpi, new, welcomes, deadline):
                port = mpi.Open_port()
        port = self.gather(port, "whether processes have started")[0]
        if before != self.generation:
            port = ""
        self._tell(new, port)
        between = self._accept(port) if port else None
        self._tell(new, None if between is None else (self._calls, before + 1))
        joins = between is not None and self._merge(between, is_new=False)
        if before < self.generation - joins:  # More have died meanwhile: the next step tries again.
            self.vacant += count
        elif self.is_chief:
            why = refusal or "no process came to where it joins"
            done = "joined" if joins else f"not replaced: {why}"
            logger.warning("%d worker(s) %s, %.1f s.", count, done, time.monotonic() - began)
        return joins

    def join(self) -> None:
        """Become a worker, at the place where the others call `refill`."""
        mpi, parent, between = self._mpi, self._parent, None
        port = replacements.ask(mpi, parent, self.deadline)
        if port:
            connect, waits = partial(mpi.COMM_WORLD.Connect, port), lambda: not parent.Iprobe(0)
            between = replacements.connected(mpi, connect, waits, self.deadline)
        numbers = replacements.ask(mpi, parent, self.deadline)
        if between is None or numbers is None or not self._merge(between, is_new=True):
            replacements.leave("it came too late")
        self.welcome, (self._calls, self.generation) = None, numbers
        self.vacant = 0  # What the program asked for before, the others have had.

    def _tell(self, new: Any, answer: Any) -> None:
        """Send new processes an answer; see `replacements.ask`."""
        if new is not None:
            with suppress(self._mpi.Exception):  # One has died, and none of them joins.
                numbers = range(new.Get_remote_size())
                self._left += [new.isend(answer, n) for n in numbers]

    def _accept(self, port: str) -> Any:
        """Return what connects workers with new processes, on all of them; None: nothing does."""
        everyone = self._layout.everyone
        accept = partial(self._connected, everyone, partial(everyone.Accept, port))
        try:
            return agreed(self._mpi, everyone, self.deadline, everyone, accept)
        except WorkersLost:
            self._meet_again(is_done=True, result=None, is_agreed=True)
            return None

    def _connected(self, comm: Any, operation: Callable[[], Any]) -> Any:
        """Return what an operation of MPI connects; it is given up where one of a comm dies."""
        mpi = self._mpi

        def no_one_died() -> bool:
            comm.Iprobe()  # Without which MPI does not see it.
            return not comm.Get_failed().Get_size()

        connected = replacements.connected(mpi, operation, no_one_died, self.deadline)
        if connected is None:
            raise mpi.Exception(mpi.ERR_PROC_FAILED)
        self._left.append(connected)
        return connected

    def _merge(self, between: Any, *, is_new: bool) -> bool:
        """Connect workers with new processes, on all of them; return whether that succeeded."""
        mpi = self._mpi
        self._left += [self._layout, self._meeting, between]
        try:
            together = partial(agreed, mpi, between, self.deadline)
            # Open MPI 5.0.11 stays in `Merge` where another one revokes what it merges.
            merge = partial(self._connected, between, partial(between.Merge, high=is_new))
            everyone = together(between, merge)
            together = partial(agreed, mpi, everyone, self.deadline)
            self._join(arrange(mpi, everyone, together), together)
        except (WorkersLost, mpi.Exception):
            between.Revoke()  # Others may wait in it.
            if not is_new:
                self._meet_again(is_done=True, result=None)
            return False
        self.generation += 1
        return True

    def _require_connection(self, label: str) -> None:
        if os.getpid() != self._process:
            raise WorkerError(
                f"This process is a copy of worker {self.rank} created by `fork`, and is not a "
                f"worker. Received: {label}. Call it in the process that connected.",
                what=label,
            )
        if self._is_closed:
            raise WorkerError(
                f"Worker {self.rank} has left the others. Received: {label}, after `close`.",
                what=label,
            )
        before = self._broken
        if before is not None:
            rank = getattr(before, "worker", None)
            raise WorkerError(
                f"Worker {self.rank} is no longer connected with the others, since "
                f"{_named(before)}\nReceived: {label}. Start the program again.",
                worker=self.rank if rank is None else rank,
                host=getattr(before, "host", "") or self.hosts[self.rank],
                step=getattr(before, "step", None),
                what=label,
                reason=_named(before),
            ) from before

    # ------------------------------------------------------------------ ends

    def check(self, label: str) -> None:
        """Raise where another worker has told that it goes no further; wait for nobody."""
        if not self._is_closed and os.getpid() == self._process:
            self._notices.look()
            self._waiting.check_without_call(label, PATIENCE)

    def failed(self, error: BaseException, step: str | None = None) -> None:
        """Tell all others that this worker goes no further: they raise a WorkerError."""
        if self._broken is not None or self._is_closed or os.getpid() != self._process:
            return
        self._broken = self._waiting.stopped = error
        if step is None:
            step = getattr(error, "training_step", None)
        if self._notices.failure is None:  # Else all have heard of that.
            notice = self._notice(FAILED, _named(error), step)
            about = error.worker if isinstance(error, WorkerError) else None
            self._notices.tell(notice._replace(about=about))

    def close(self) -> None:
        """Wait until all others have ended as well, and give back what the calls use."""
        if self._is_closed or os.getpid() != self._process:
            return
        atexit.unregister(self._at_exit)
        try:
            with suppress(Exception):  # Which makes this worker one that failed.
                self._background.drain()
            self._background.close()
            self._is_closed = True
            if self.welcome is not None:
                return
            self._notices.look()
            if self._end_together() and not self._is_anything_under_way():
                self._meeting.close()
                failed = self._broken is not None or self._notices.failure is not None
                self._layout.close(failed=failed)
            else:
                abort_at_exit(_status(self._broken))
        except BaseException:
            abort_at_exit(1)
            raise

    def _end_together(self) -> bool:
        """Say that this worker has come to its end; return whether all others do."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError, OSError):
                stream.flush()  # The launcher may end this process as soon as others have heard.
        self._notices.tell(self._notice(ENDED))
        # Where one has failed, others are not waited for as long as they work.
        if self._broken is None and self._notices.failure is None:
            if self._all_end(self.deadline, while_they_work=True):
                return True
            if not self._log_failure():
                return False
        return self._all_end(PATIENCE)

    def _log_failure(self) -> bool:
        """Log what another worker failed with; return whether one has."""
        failure = self._notices.failure
        if failure is not None:
            fields = (self.rank, failure.worker, failure.host, failure.reason)
            logger.error("After worker %d had finished, worker %d on host %s failed: %s", *fields)
        return failure is not None

    def _all_end(self, seconds: float, *, while_they_work: bool = False) -> bool:
        """Return whether all others come to their end.

        Args:
            seconds: The time that they have.
            while_they_work: Whether they have it again and again while one of them computes on this
                host, and none fails; what those of other hosts do cannot be seen.
        """
        began = last = time.monotonic()
        ticks = self._ticks()
        while len(self._notices.ended) < self.count - 1:
            self._notices.look()
            try:
                self._waiting.check_alive()
            except WorkersLost:
                self._meet_again(is_done=self._broken is None, result=None)
                self._notices.tell(self._notice(ENDED))
            self._notices.deliver(0.0)
            if while_they_work and self._notices.failure is not None:
                return False
            now = time.monotonic()
            if now - last > seconds:
                if not while_they_work:
                    return False
                last, before, ticks = now, ticks, self._ticks()
                fields = (self.rank, now - began, ", ".join(map(str, self._not_ended())))
                if not any(before.get(rank, spent) < spent for rank, spent in ticks.items()):
                    logger.error(
                        "Worker %d has finished and ends the job: worker(s) %s did not finish, "
                        "and used no visible processor time, for %.0f seconds. Check what they "
                        "wait for. If that may take longer, set a longer `timeout_seconds` in "
                        "`CommunicationOptions`.",
                        *(fields[0], fields[2], seconds),
                    )
                    return False
                logger.warning(
                    "Worker %d has finished and has waited %.0f seconds for worker(s) %s.",
                    *fields,
                )
            time.sleep(_OFTEN)
        return not while_they_work or self._notices.failure is None

    def _not_ended(self) -> list[int]:
        return [rank for rank in self._others() if rank not in self._notices.ended]

    def _ticks(self) -> dict[int, int]:
        """Return how long each worker that has not ended has computed, as far as that is seen."""
        by_rank = {rank: processor_ticks(self._neighbours.get(rank)) for rank in self._not_ended()}
        return {rank: ticks for rank, ticks in by_rank.items() if ticks is not None}

    def _notice(self, kind: str, reason: str = "", step: str | None = None) -> Notice:
        return Notice(kind, self.rank, self.hosts[self.rank], self._calls, step, reason)

    def _is_anything_under_way(self) -> bool:
        """Return whether MPI still works for this worker, which it then may do indefinitely."""
        return bool(self._under_way) or self._meeting.is_anything_under_way()

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)  # What Python has printed before it ended.
        if isinstance(error, BaseException):
            self.failed(error)
        self.close()


def _holder(states: Sequence[tuple[int, int, bool]]) -> int | None:
    """Return who has the result of a call that others lack; None: all have it, or nobody.

    Args:
        states: For each worker the number that it had, that of its last call, and whether it has
            the result.

    Example:
        >>> _holder([(0, 7, False), (2, 7, True)]), _holder([(0, 8, False), (2, 7, True)])
        (1, None)
    """
    lacking = {calls for _, calls, is_done in states if not is_done}
    holders = (n for n, (_, calls, is_done) in enumerate(states) if is_done and calls in lacking)
    return next(holders, None)


def _named(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def _status(error: BaseException | None) -> int:
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    code = error.code if isinstance(error, SystemExit) else None
    return code if isinstance(code, int) and code else 1
