"""The handle of an open connection: the communicator, its progress and its lock.

A call of a communicator may hang, so nobody waits for one without looking whether it was given up.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from mirrored.backends.communication.futures import Future
from mirrored.backends.communication.in_flight import Request
from mirrored.backends.stream_backend import Communicator, Event, StreamBackend
from mirrored.errors import CollectiveError, CollectiveTimeoutError

# How often who waits for a call of another thread looks whether that was given up, in seconds.
_OFTEN = 0.05


class Progress:
    """How far one collective is: its events, by rank, once they are recorded.

    It keeps the arrays: their memory is the devices' until the collective has ended, also where an
    interrupt lets nobody else wait for that.

    Args:
        sends: For each rank the array that it adds.
        receives: For each rank the array for the sum.
        streams: For each rank the device, with the stream of its part.

    Attributes:
        events: For each rank the event behind its part, once it was asked for.
        begun: Whether it is being asked for, or was.
    """

    def __init__(
        self, sends: Sequence[Any], receives: Sequence[Any], streams: Sequence[StreamBackend]
    ) -> None:
        self.sends = tuple(sends)
        self.receives = tuple(receives)
        self.streams = streams
        self.events: list[Event] = []
        self.begun = False

    def record(self) -> None:
        """Note the end of what each stream was asked for so far."""
        self.events = [stream.record() for stream in self.streams]

    def ranks(self) -> list[bool]:
        """Return whether each rank is done."""
        if not self.events:
            return [False] * len(self.streams)
        return [s.is_done(e) for s, e in zip(self.streams, self.events, strict=True)]

    def __call__(self) -> bool:
        """Return whether all ranks are done; the first that is not is the last one asked."""
        return bool(self.events) and all(
            stream.is_done(event) for stream, event in zip(self.streams, self.events, strict=True)
        )


class Handle:
    """A communicator, from connecting the devices until they are disconnected.

    Args:
        communicator: The communicator.

    Attributes:
        asked: Sizes and dtypes of what was summed.
        issuing: A call in a thread of its own that was not seen to return, and what it asks for.
        process: The number of the process that connected the devices.
        is_gone: Whether it was aborted, or is about to be, or was closed.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.asked: set[tuple[Any, ...]] = set()
        self.issuing: tuple[Future[None], Request] | None = None
        self.process = os.getpid()
        self.is_gone = False
        self._communicator = communicator
        self._calling = threading.Lock()  # Held in all calls but `abort`, and kept where one hangs.

    def issue(self, progress: Progress) -> None:
        """Ask for a collective, and record the events behind it.

        Raises:
            CollectiveError: It was refused, or the devices are not connected any more.
        """
        with self._alone():
            try:
                self._communicator.all_reduce(progress.sends, progress.receives, progress.streams)
            except KeyboardInterrupt:  # It may have been asked for: its end is to be seen.
                progress.record()
                raise
            progress.record()

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls; None: nothing that can be told now."""
        if not self._calling.acquire(blocking=False):
            return None
        try:
            return None if self.is_gone else self._communicator.failure()
        finally:
            self._calling.release()

    def abort(self) -> None:
        """Abort the communicator, which lets calls of it return as well."""
        self._communicator.abort()

    def close(self) -> None:
        """Disconnect the devices."""
        with self._alone():
            self.is_gone = True
            self._communicator.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other call is under way, which may never be."""
        while not (alone := self._calling.acquire(timeout=_OFTEN)) and not self.is_gone:
            pass
        try:
            if self.is_gone:
                raise CollectiveError("The devices are not connected any more.")
            yield
        finally:
            if alone:
                self._calling.release()


class Waits(Protocol):
    """What a wait goes through, so that sums are looked after meanwhile: `Watch`."""

    @property
    def abort_seconds(self) -> float:
        """How long aborts may take."""

    @property
    def clock(self) -> Callable[[], float]:
        """What time it is, in seconds."""

    def wait(self, done: Callable[[], bool], *, may_break: bool = False) -> None:
        """Return when a function says so."""


class CallLock:
    """The lock on calls of the library that connects devices: all connections of a watch share it.

    It is not safe to ask NCCL from several threads at once for what is on one device, of whichever
    connection it is: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/threadsafety.html.

    Attributes:
        asking: What the thread that holds it asks for; None: nothing now.
        unseen: What has a call in a thread of its own that was not seen to return, since who waited
            for it was interrupted.
    """

    def __init__(self) -> None:
        self.asking: Request | None = None
        self.unseen: Handle | None = None
        self._lock = threading.Lock()

    def acquire(self, watch: Waits, names: Sequence[str], seconds: float = math.inf) -> None:
        """Wait N seconds for the lock, and look after what is in flight meanwhile.

        Raises:
            CollectiveTimeoutError: It did not come in time; or a collective missed its deadline.
            CollectiveError: A collective failed.
        """
        if not self.try_acquire():
            waiting = _LockWait(self, watch, seconds)
            try:
                watch.wait(waiting.is_over, may_break=True)
            except BaseException:
                if waiting.is_held:
                    self._lock.release()
                raise
            if not waiting.is_held:
                raise _lock_error(names, waiting.hung)

    def release(self) -> None:
        """Let others have it."""
        self.asking = None
        self._lock.release()

    def try_acquire(self) -> bool:
        """Take it if nobody has it; return whether it is this thread's now."""
        return self._lock.acquire(blocking=False)


class _LockWait:
    """A thread that waits for the lock, or sees that who holds it hangs after an abort."""

    def __init__(self, lock: CallLock, watch: Waits, seconds: float) -> None:
        self.is_held = False
        self.hung: Request | None = None
        self._call_lock = lock
        self._watch = watch
        self._until = watch.clock() + seconds
        self._hung_until = math.inf

    def is_over(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        self.is_held = self.is_held or self._call_lock.try_acquire()
        asking = self._call_lock.asking
        if asking is None or not asking.is_lost:
            self.hung, self._hung_until = None, math.inf
        elif asking is not self.hung:  # An abort is to let it return, and has as long for that.
            self.hung = asking
            self._hung_until = self._watch.clock() + self._watch.abort_seconds
        return self.is_held or self._watch.clock() >= min(self._until, self._hung_until)


def _lock_error(names: Sequence[str], hung: Request | None) -> CollectiveTimeoutError:
    """Return the error of a thread that cannot use devices since another one does."""
    if hung is None:
        why, task = "Another thread still uses connections of this process", "waiting for a turn"
    else:
        why = "Another thread does not come back from asking for a collective, which was aborted"
        names, task = hung.connection.names, hung.what
    return CollectiveTimeoutError(
        f"{why}. Received: {', '.join(names)}: {task}. Where it hangs the devices are of no use to "
        "this process any more: end it, and go on from the last checkpoint.",
        devices=names,
        what=task,
    )
