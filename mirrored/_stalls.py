"""Reports of threads that make no progress: the environment variable MIRRORED_REPORT_STALL.

Nothing registers its waits, so they cost nothing. A thread looks at the stacks of the others every
few seconds, finds in them the functions that wait, and logs who waits for what, with the stacks.
"""

import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

from mirrored._logging import logger
from mirrored._threads import new_thread, start
from mirrored._tracebacks import LIBRARY, is_pythons

_VARIABLE = "MIRRORED_REPORT_STALL"
# What starts programs is on the stacks of all that they do.
_STARTERS = tuple(LIBRARY + name for name in ("__main__.py", "_commands", "_plugins"))
_LONGEST_PAUSE = 5.0  # Seconds between two looks, at most.


class Wait(NamedTuple):
    """What a function of the library waits for.

    Attributes:
        target: What it waits for; empty: for work, which is no stall.
        began: Its local variable with the time at which it began. A function that polls has one;
            the others sleep until they are woken.
        details: Returns more about it, from its local variables.
    """

    target: str
    began: str = ""
    details: Callable[[Mapping[str, Any]], str] | None = None


def _call_of_workers(values: Mapping[str, Any]) -> str:
    ranks = values["missing"]() or values["others"]()
    return f"{values['call']}; worker {', '.join(map(str, ranks))}"


_WORK = Wait("")
_DEVICES = "devices, and collectives in flight"
# By file and function.
WAITS = {
    "backends/communication/in_flight.py:Reserve._run": _WORK,
    "backends/communication/in_flight.py:Workers.rest_until": Wait(_DEVICES, "_began"),
    "backends/communication/in_flight.py:Workers.wait": Wait(_DEVICES, "_began"),
    "backends/communication/watch.py:Watch.wait": Wait(_DEVICES, "_began"),
    "backends/communication/watch.py:Watchdog._run": _WORK,
    "backends/cuda/cuda_backend.py:CudaBackend.synchronize": Wait("a card"),
    "backends/cuda/cuda_backend.py:CudaBackend.wait_on_host": Wait("a card"),
    "backends/cuda/current_card.py:Entered.__enter__": Wait("a card"),
    "backends/cuda/graphs.py:Event.synchronize": Wait("a card"),
    "backends/host_compiling.py:_call": Wait("a C compiler"),
    "backends/selftest/__init__.py:_follow": Wait("a process that tests cards", "deadline"),
    "compat/v1/coordinator.py:Coordinator.join": Wait("the threads of a Coordinator", "_began"),
    "compat/v1/coordinator.py:Coordinator.wait_for_stop": Wait("a stop of a Coordinator"),
    "data/prefetching.py:_Worker.next": Wait("an element that `prefetch` creates"),
    "data/prefetching.py:_stop": Wait("the end of the thread of `prefetch`"),
    "data/prefetching.py:_work": _WORK,
    "data/py_dataset.py:_work": _WORK,
    "data/py_dataset.py:parallel_map": Wait("a batch that a thread of a PyDataset creates"),
    "distribute/replicas.py:_Relay._wait_for_merge": Wait("its turn, after the other replicas"),
    "distribute/replicas.py:_Relay._wait_for_replicas": Wait("replicas to meet or end", "_began"),
    "distribute/replicas.py:_Relay.stop": Wait("the end of a replica's thread"),
    "_threads.py:Task.wait": Wait("an asynchronous save"),
    "program/thread_pool.py:Barrier.follow": Wait("the first thread of a recorded step"),
    "program/thread_pool.py:Barrier.lead": Wait("the other threads of a recorded step"),
    "program/thread_pool.py:ThreadPool.run": Wait("another run on the same threads"),
    "program/thread_pool.py:_Worker.join": Wait("the end of a thread of recorded steps"),
    "program/thread_pool.py:_Worker.wait": Wait("the other threads of a recorded step"),
    "program/thread_pool.py:_work": _WORK,
    "program/function.py:Function.__call__": Wait("another call of the recorded function"),
    "program/function.py:Function.trace_for": Wait("another call of the recorded function"),
    "workers/background.py:Background._run": _WORK,
    "workers/background.py:PendingSum.settle": Wait("a sum over workers that has failed"),
    "workers/background.py:PendingSum.wait": Wait("a sum over workers", "_began"),
    "workers/connecting.py:connect": Wait("another thread that connects workers"),
    "workers/connecting.py:share_cores": Wait("the other workers of this host"),
    "workers/host_memory.py:_mapped_by_all": Wait("the other workers of this host"),
    "workers/host_memory.py:_fitting": Wait("the other workers of this host"),
    "workers/launch.py:_wait_until_all_workers_have_started": Wait("the start of all workers"),
    "workers/layout.py:_meet": Wait("all workers to connect", "began"),
    "workers/layout.py:arrange": Wait("all workers to connect"),
    "workers/layout.py:lay_out": Wait("all workers to connect"),
    "workers/meeting.py:Meeting.__init__": Wait("all workers to connect"),
    "workers/mpi_workers.py:MPIWorkers._all_end": Wait("the end of the other workers", "began"),
    "workers/mpi_workers.py:MPIWorkers._join": Wait("the other workers of this host"),
    "workers/notices.py:Notices.deliver": Wait("notices to other workers", "until"),
    "workers/regrouping.py:_wait": Wait("the workers that are left", "began"),
    "workers/replacements.py:are_ready": Wait("new processes in place of dead workers", "until"),
    "workers/replacements.py:connected": Wait("new processes in place of dead workers"),
    "workers/replacements.py:ask": Wait("the workers that a new process joins"),
    "workers/waiting.py:Waiting.until": Wait("other workers", "began", _call_of_workers),
}


class _Seen(NamedTuple):
    """What a thread was doing, and since when.

    Attributes:
        marks: They are the same as long as it makes no progress, by the kind of mark.
        since: When each mark was new.
        due: When it is reported next.
    """

    marks: dict[str, object]
    since: dict[str, float]
    due: float


class _Thread:
    """A thread inside the library, as its stack shows it.

    Args:
        thread: The thread.
        frame: Its innermost frame.

    Attributes:
        wait: What it waits for; None: it runs.
    """

    def __init__(self, thread: threading.Thread, frame: FrameType) -> None:
        self.name = thread.name
        self.frame = frame
        self._frames = [at for at, _ in traceback.walk_stack(frame)]
        # Python's own code waits for whoever called it.
        callers = (at for at in self._frames if not is_pythons(at.f_code.co_filename))
        self._top = next(callers, frame)
        self.wait, waiting = self._find_wait()
        self.marks: dict[str, object] = {"turns": (waiting.f_code, _turns(thread))}
        if self.wait is not None and self.wait.began:
            self.marks = {"turns": (waiting.f_code, waiting.f_locals.get(self.wait.began))}
        elif self.wait is None:
            self.marks["turns"] = (self._top.f_code, self._top.f_lasti, _turns(thread))
        self.replica: Any = None
        for at in self._frames if self.wait is None else ():
            if _key(at) == "distribute/replicas.py:_Replica.call":
                self.replica = at.f_locals["self"]
                self.marks["replica"] = self.replica.began
                break

    @property
    def is_inside(self) -> bool:
        """Whether it is in the library, and not to wait for work there."""
        return any(map(_is_ours, self._frames)) and (self.wait is None or bool(self.wait.target))

    def does(self) -> str:
        """Return what it does, in a sentence without a stop."""
        code, line = self._top.f_code, self._top.f_lineno
        where = f"`{code.co_qualname}` ({code.co_filename}:{line})"
        if self.replica is not None:
            return f"replica {self.replica.number} is in {where}, in thread {self.name!r}"
        if self.wait is None:
            return f"thread {self.name!r} is in {where}"
        details = ""
        if self.wait.details is not None:
            with suppress(Exception):  # It reads what the thread is about to change.
                at = next(at for at in self._frames if WAITS.get(_key(at)) is self.wait)
                details = f": {self.wait.details(at.f_locals)}"
        return f"thread {self.name!r} waits for {self.wait.target}{details}"

    def stack(self) -> str:
        """Return its stack, as tracebacks show it."""
        frames = traceback.extract_stack(self.frame)
        while len(frames) > 1 and frames[0].filename == threading.__file__:
            del frames[0]  # They start threads.
        lines = "".join(traceback.format_list(frames))
        return f"Thread {self.name!r}, most recent call last:\n{lines}"

    def _find_wait(self) -> tuple[Wait | None, FrameType]:
        for at, _ in traceback.walk_stack(self._top):
            wait = WAITS.get(_key(at))
            if wait is not None and (at is self._top or wait.began):
                return wait, at
            if not _is_ours(at):
                break
        return None, self._top


def _key(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename.removeprefix(LIBRARY)}:{code.co_qualname}"


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(LIBRARY) and not file.startswith(_STARTERS)


def _turns(thread: threading.Thread) -> object:
    """Return how often a thread has had the processor: a wait that begins or ends counts.

    Where the system does not say (it is not Linux) the thread's place in the code has to do.
    """
    with suppress(OSError), open(f"/proc/self/task/{thread.native_id}/status") as file:
        return [line for line in file if "ctxt_switches" in line]
    return None


class StallReporter:
    """A thread that reports those which make no progress.

    A stall is reported after N seconds, and again each time that it has lasted twice as long.

    Args:
        seconds: How many seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[int, _Seen] = {}
        self._ended = threading.Event()
        self._thread = new_thread("mirrored-stalls", self._run)

    def start(self) -> None:
        """Start the thread."""
        start(self._thread)

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def look(self, now: float) -> str | None:
        """Look at all threads, and return what is to be reported; None: nothing.

        Args:
            now: The time, in seconds.
        """
        frames, seen, late = sys._current_frames(), {}, 0.0
        inside: list[_Thread] = []
        for known in threading.enumerate():
            if known is threading.current_thread() or known.ident not in frames:
                continue
            thread = _Thread(known, frames[known.ident])
            if not thread.is_inside:
                continue
            before = self._seen.get(known.ident, _Seen({}, {}, now))
            since = {
                kind: before.since[kind] if before.marks.get(kind) == mark else now
                for kind, mark in thread.marks.items()
            }
            waited = now - min(since.values())
            due = before.due if waited else now + self._seconds
            if waited and now >= due:
                late, due = max(late, waited), now + waited
            seen[known.ident] = _Seen(thread.marks, since, due)
            inside.append(thread)
        self._seen = seen
        return _report(inside, late) if late else None

    def _run(self) -> None:
        while not self._ended.wait(min(self._seconds / 4, _LONGEST_PAUSE)):
            report = self.look(time.monotonic())
            if report is not None:
                logger.warning("%s", report)


def _report(inside: Iterable[_Thread], seconds: float) -> str:
    # Those that wait for others come last.
    threads = sorted(inside, key=lambda thread: thread.wait is not None)
    does = "; ".join(thread.does() for thread in threads)
    stacks = "".join(f"\n{thread.stack()}" for thread in threads).rstrip()
    return f"No progress for {seconds:.4g} seconds: {does}.{stacks}"


def whereabouts(thread: threading.Thread) -> tuple[str, str]:
    """Return what a thread does, in a sentence without a stop, and its stack.

    Args:
        thread: A thread.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return f"thread {thread.name!r} has ended", ""
    seen = _Thread(thread, frame)
    return seen.does(), seen.stack().rstrip()


def seconds_from_environment() -> float | None:
    """Return after how many seconds the environment asks for reports; None: it does not.

    Raises:
        ValueError: It is no positive number.
    """
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    with suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < math.inf:
            return seconds
    raise ValueError(
        f"The environment variable {_VARIABLE} must be a positive number of seconds. Received: "
        f"{text!r:.80}. Set it as in {_VARIABLE}=60, or unset it."
    )
