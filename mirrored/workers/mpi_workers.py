"""The workers of a job that MPI connects.

When one of them fails all others hear of it, wherever they wait; and none ends while others rely on
it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.errors import WorkerError
from mirrored.workers.background import Background, PendingSum
from mirrored.workers.launch import abort_at_exit
from mirrored.workers.layout import Layout
from mirrored.workers.meeting import Meeting
from mirrored.workers.notices import ENDED, FAILED, Notice, Notices
from mirrored.workers.ordered_sums import name_of
from mirrored.workers.waiting import Waiting, processor_ticks, this_process
from mirrored.workers.worker import Workers
from mirrored.workers.worker_calls import ANY, Call

# Seconds that others have to end by themselves, and say why, before the launcher ends them.
PATIENCE = 5.0
_OFTEN = 0.005  # How often a worker that has come to its end looks whether the others have.
_INTERRUPTED = 130  # The status of a program that Ctrl-C ended, as shells have it.


class MPIWorkers(Workers):
    """Workers that MPI connects; `connect` makes it.

    Args:
        mpi: The module of MPI.
        layout: Who is where, and the communicators.
    """

    def __init__(self, mpi: Any, layout: Layout) -> None:
        super().__init__(layout.rank, layout.hosts, layout.local_rank)
        self.on_several_hosts = layout.on_several_hosts
        self._mpi = mpi
        self._layout = layout
        self._notices = Notices(mpi, layout.notices)
        self._waiting = Waiting(self, self._notices)
        self._meeting = Meeting(mpi, layout, self._waiting)
        self._lock = threading.Lock()  # One call at a time, whichever thread makes it.
        self._background = Background(self._sum_meanwhile)
        self._calls = 0
        # What MPI's own collectives read and write, for as long as they may do so.
        self._under_way: list[Any] = []
        self._broken: BaseException | None = None
        self._is_closed = False
        self._process = os.getpid()
        processes = layout.local.allgather(this_process())
        self._neighbours = dict(zip(layout.neighbours, processes, strict=True))
        atexit.register(self._at_exit)

    # ------------------------------------------------------------------ calls

    def _sum(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> None:
        """Compute `sum_in_order` of two vectors."""
        said = ("sum", name_of(vector.dtype), vector.size, label)
        # Sums that overflow are infinite, as those of operations are.
        with self._call(*said) as call, np.errstate(all="ignore"):
            self._meeting.sum(call, vector, out)

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
        with self._call("gather of objects", "", ANY, label) as call:
            self._meeting.meet(call)
            return [pickle.loads(part) for part in self._gathered(call, data)]

    def gather_arrays(self, array: NDArray[Any], label: str) -> list[NDArray[Any]]:
        """Return an array of each worker, by rank; their shapes may differ."""
        data = pickle.dumps(np.asarray(array), pickle.HIGHEST_PROTOCOL)
        with self._call("gather of arrays", array.dtype.name, ANY, label) as call:
            self._meeting.meet(call)
            return [pickle.loads(part) for part in self._gathered(call, data)]

    def broadcast(self, arrays: list[NDArray[Any]], label: str) -> None:
        """Write worker 0's values into the arrays of all others."""
        kinds = repr([(part.dtype.name, part.shape) for part in arrays])
        total = sum(part.nbytes for part in arrays)
        # Of arrays that differ the check of their shapes and dtypes does.
        said = f"bytes in {len(arrays)} arrays (check {zlib.crc32(kinds.encode()):08x})"
        with self._call("broadcast", said, total, label) as call:
            self._meeting.meet(call)
            for array in arrays:
                flat = np.ascontiguousarray(array).reshape(-1)
                bytes_of = [flat.view(np.uint8), self._mpi.BYTE]
                self._finish(call, self._layout.everyone.Ibcast(bytes_of, root=0), flat)
                if not self.is_chief and not np.may_share_memory(flat, array):
                    np.copyto(array, flat.reshape(array.shape))

    def barrier(self, label: str) -> None:
        """Return when all workers have come here."""
        with self._call("barrier", "", ANY, label) as call:
            self._meeting.meet(call)

    def _gathered(self, call: Call, data: bytes) -> list[memoryview]:
        mpi, everyone = self._mpi, self._layout.everyone
        mine, sizes = np.array([len(data)], np.int64), np.empty(self.count, np.int64)
        request = everyone.Iallgather([mine, mpi.INT64_T], [sizes, mpi.INT64_T])
        self._finish(call, request, mine, sizes)
        ends = np.cumsum(sizes)
        received = np.empty(int(ends[-1]), np.uint8)
        places = (sizes.tolist(), (ends - sizes).tolist())
        request = everyone.Iallgatherv([data, mpi.BYTE], [received, places, mpi.BYTE])
        self._finish(call, request, data, received)
        return [received[begin:end].data for begin, end in zip(ends - sizes, ends, strict=True)]

    def _finish(self, call: Call, request: Any, *memory: Any) -> None:
        """Wait until one of MPI's collectives is over, that works on some memory."""
        self._under_way.append((request, memory))
        self._waiting.until(request.Test, call, tuple, self._others)
        self._under_way.clear()

    def _others(self) -> list[int]:
        return [rank for rank in range(self.count) if rank != self.rank]

    @contextmanager
    def _call(self, kind: str, dtype: str, size: int, label: str) -> Iterator[Call]:
        """Within this context the worker is in a call; what it raises all others hear of."""
        self._background.drain()
        with self._lock:
            self._require_connection(label)
            self._calls += 1
            call = Call(self._calls, kind, dtype, size, label)
            try:
                self._notices.look()
                self._waiting.check(call)
                yield call
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


def _named(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def _status(error: BaseException | None) -> int:
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    code = error.code if isinstance(error, SystemExit) else None
    return code if isinstance(code, int) and code else 1
