"""Waits for other workers, until all arrive, one fails or makes no progress, or a timeout."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from mirrored import _interrupt
from mirrored._numbers import counted
from mirrored.errors import WorkerError, WorkerTimeoutError
from mirrored.workers.notices import FAILED, Notice, Notices, WorkersLost
from mirrored.workers.worker import Workers
from mirrored.workers.worker_calls import Call

# How often it asks at once, which takes some microseconds; for how many seconds it lets others have
# the processor in between; and how long it sleeps then, as a part of the time that it has waited
# and in seconds, at least and at most. Others that compute on the same cores lose a
# hundredth of them by this.
_AT_ONCE, _YIELDING, _PART = 50, 1e-3, 0.05
_SHORTEST_SLEEP, _LONGEST_SLEEP = 1e-5, 1e-3
# Seconds that a worker waits longer for others that have come and are late themselves, since who
# waits for the one that is missing can say which it is.
_LONGER = 2.0

# Seconds between two looks at the others after which this process must have been stopped.
_STOPPED = 1.0
DIED = "its process ended without a word: it was killed, or crashed"

_yield = getattr(os, "sched_yield", lambda: time.sleep(0))


class Waiting:
    """Waits in the calls of one worker.

    Args:
        workers: Who it is, and how long it may wait.
        notices: What others tell.

    Attributes:
        hurries: Whether it asks at once and often before it sleeps. Where another thread computes
            meanwhile it does not, which would take that one's time.
        stopped: What this worker failed with while another of its threads waits; None: it did not.
    """

    def __init__(self, workers: Workers, notices: Notices) -> None:
        self._workers = workers
        self._notices = notices
        self.hurries = True
        self.stopped: BaseException | None = None

    def until(
        self,
        ready: Callable[[], bool],
        call: Call,
        missing: Callable[[], Sequence[int]],
        others: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        """Return when `ready` says so.

        Args:
            ready: Whether to go on.
            call: What is waited in.
            missing: The ranks of those who have not come to this call; none: all have.
            others: The ranks of those who have come and are waited for all the same.

        Raises:
            WorkerError: Another worker failed, or has ended and does not come.
            WorkerTimeoutError: Others are not there by the deadline.
        """
        for _ in range(_AT_ONCE if self.hurries else 1):
            if ready():
                return
        began = last = time.monotonic()
        while not ready():
            now = time.monotonic()
            if now - last > _STOPPED:  # This process was: so may the others have been.
                began += now - last
            last = now
            self._notices.look()
            if not ready():  # Who came to this call may have failed, or ended, after it.
                self.check(call)
            if _interrupt.is_overdue():
                _interrupt.deliver()
            waited = time.monotonic() - began
            if waited > self._workers.deadline:
                absent = missing()
                if absent or waited > self._workers.deadline + _LONGER:
                    raise self._timeout(call, absent, others(), waited)
            if waited < _YIELDING and self.hurries:
                _yield()
            else:
                time.sleep(min(max(waited * _PART, _SHORTEST_SLEEP), _LONGEST_SLEEP))

    def check(self, call: Call | None) -> None:
        """Raise what others have told, where it means that this worker cannot go on.

        Args:
            call: What this worker waits in; None: nothing yet.
        """
        if self.stopped is not None:
            raise WorkerError(
                f"Worker {self._workers.rank} failed elsewhere while it waited. Received: "
                f"{call or 'no call'}; {type(self.stopped).__name__}: {self.stopped}",
                worker=self._workers.rank,
                host=self._workers.hosts[self._workers.rank],
                what="" if call is None else call.label,
                reason=str(self.stopped),
            ) from self.stopped
        self.check_alive()
        failure = self._notices.failure
        if failure is not None:
            raise _failed(failure, self._workers, call)
        for notice in self._notices.ended.values():
            if call is not None and notice.calls < call.number:
                raise self._ended(notice, call, call.label)

    def check_alive(self) -> None:
        """Raise `WorkersLost` where workers have died and the others go on; note it otherwise."""
        dead, notices, hosts = self._notices.dead, self._notices, self._workers.hosts
        if not dead:
            return
        if self._workers.on_failure != "raise":
            raise WorkersLost
        if notices.failure is None:
            notices.failure = Notice(FAILED, dead[0], hosts[dead[0]], -1, reason=DIED)

    def check_without_call(self, label: str, patience: float) -> None:
        """Raise what others have told, where this worker waits for them beside its calls.

        Args:
            label: What it waits for.
            patience: Seconds that it waits for those that have ended, who did their part before.
        """
        self.check_alive()
        if self.stopped is None:  # Else it has been told.
            if self._notices.failure is not None:
                raise _failed(self._notices.failure, self._workers, None)
            if time.monotonic() - self._notices.first_end > patience:
                raise self._ended(next(iter(self._notices.ended.values())), label, label)

    def _ended(self, notice: Notice, where: object, label: str) -> WorkerError:
        return WorkerError(
            f"Worker {notice.worker} on host {notice.host} has ended after {notice.calls} calls, "
            f"and worker {self._workers.rank} waits for it in {where}. All workers must take the "
            "same steps. Check whether that worker had fewer batches, left a loop early, or "
            "called `sys.exit`.",
            worker=notice.worker,
            host=notice.host,
            what=label,
            reason="ended",
        )

    def _timeout(
        self, call: Call, absent: Sequence[int], others: Sequence[int], waited: float
    ) -> WorkerTimeoutError:
        late = absent or others
        names = ", ".join(f"worker {rank} on host {self._workers.hosts[rank]}" for rank in late)
        did = "did not come to" if absent else "came to, and did not finish,"
        return WorkerTimeoutError(
            f"{names[:1].upper()}{names[1:]} {did} {call} of worker {self._workers.rank} by its "
            f"deadline. Received: {waited:.4g} seconds, of at most {self._workers.deadline:.4g} "
            "seconds. Look there whether "
            f"{'they run' if len(late) > 1 else 'it runs'} and what "
            f"{'they do' if len(late) > 1 else 'it does'}; if a step may take that long, set a "
            "longer `timeout_seconds` in `CommunicationOptions`.",
            worker=late[0] if late else None,
            host=self._workers.hosts[late[0]] if late else "",
            what=call.label,
            reason="timeout",
            missing=late,
        )


def _failed(notice: Notice, workers: Workers, call: Call | None) -> WorkerError:
    where = "" if call is None else f" Worker {workers.rank} was in {call}."
    first = notice.worker if notice.about in (None, workers.rank) else int(notice.about)
    step = f" in {notice.step}" if notice.step else ""
    after = "" if notice.calls < 0 else f", after {counted(notice.calls, 'call')}"
    return WorkerError(
        f"Worker {notice.worker} on host {notice.host} failed{step}{after}: {notice.reason}\n"
        f"{where.strip()} The workers are no longer connected; the output of that worker has the "
        "error.",
        worker=first,
        host=notice.host if first == notice.worker else workers.hosts[first],
        step=notice.step,
        what="" if call is None else call.label,
        reason=notice.reason,
    )


class Process(NamedTuple):
    """A process, which its number alone does not name: numbers are given again.

    Attributes:
        number: Its number.
        started: When it started, in the system's ticks.
        namespace: The processes among which it has that number, of a host since it started.
    """

    number: int
    started: int
    namespace: str


def this_process() -> Process | None:
    """Return this process; None: the system does not say.

    Example:
        >>> this = this_process()
        >>> this is None or this.number == os.getpid()
        True
    """
    times = _times(os.getpid())
    return None if times is None else Process(os.getpid(), times[0], _namespace())


def processor_ticks(process: Process | None) -> int | None:
    """Return how long a process has computed, in the system's ticks; None: it cannot be seen.

    Args:
        process: What `this_process` returned there.
    """
    if process is None or process.namespace != _namespace():
        return None
    times = _times(process.number)
    return times[1] if times is not None and times[0] == process.started else None


def _times(number: int) -> tuple[int, int] | None:
    """Return when a process started and how long it has computed."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{number}/stat", "rb") as file:
            # Behind the name, which may hold anything: the state is the third value.
            values = file.read().rpartition(b")")[2].split()
        return int(values[19]), int(values[11]) + int(values[12])
    return None


def _namespace() -> str:
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return ""
