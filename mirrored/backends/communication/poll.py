"""Polls collectives in flight, one thread at a time, without holding a lock.

The driver may keep the thread that asks. The books stay open then, so that others can end what is
late, which lets that thread go on.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from mirrored._interrupt import WAKEUP
from mirrored._threads import new_thread, start
from mirrored.backends.communication.futures import Future, Workers
from mirrored.backends.communication.in_flight import Connected, InFlight, Request

# Seconds that `rest` waits at most, and how often it looks.
_REST, _OFTEN = 1.0, 0.01


class Trouble(NamedTuple):
    """A collective that failed or is late; the fields are those of `FailedCollective`."""

    request: Request
    done: Sequence[bool | None]
    cause: BaseException | None = None
    failure: str | None = None
    late: bool = False


class Poller:
    """Polls what is in flight, of which the books are read and written under a reentrant lock.

    Attributes:
        last: When the last look began.
        under_way: The look that is under way; None: there is none.
    """

    def __init__(
        self,
        in_flight: InFlight,
        lock: AbstractContextManager[object],
        clock: Callable[[], float],
    ) -> None:
        self.last = -math.inf
        self.under_way: object | None = None
        self._in_flight = in_flight
        self._lock = lock
        self._clock = clock

    def poll(self, connections: Iterable[Connected] | None = None) -> Trouble | None:
        """Retire what is done, and return the first that failed or is late, if any.

        It looks at these connections or at all; while another look is under way it does nothing.
        """
        with self._lock:
            if self.under_way is not None:
                return None
            self.under_way = this = object()
            self.last = self._clock()
            where = self._in_flight.connections() if connections is None else tuple(connections)
        try:
            troubles = map(self._poll_queue, where)
            return next((trouble for trouble in troubles if trouble is not None), None)
        finally:
            with self._lock:
                if self.under_way is this:  # Else it was given up, and others look by now.
                    self.under_way = None

    def give_up(self) -> None:
        """Wait no more for the look that is under way, which may never be over."""
        self.under_way = None

    def overdue(self) -> Trouble | None:
        """Return one that is late by the books, if any, without asking a device."""
        with self._lock:
            request = self._in_flight.overdue()
            return None if request is None else Trouble(request, request.ranks_unknown(), late=True)

    def _poll_queue(self, connection: Connected) -> Trouble | None:
        while (request := self._first(connection)) is not None:
            try:
                if not request.done():
                    break
            except Exception as error:  # Whatever it is, nobody can say any more when it is done.
                return Trouble(request, request.ranks_done(), cause=error)
            with self._lock:
                self._in_flight.retire(request)
        if request is None:
            return None
        failure = connection.failure()
        with self._lock:
            late = request in self._in_flight and self._in_flight.is_late(request)
        if failure is None and not late:
            return None
        return Trouble(request, request.ranks_done(), failure=failure, late=failure is None)

    def _first(self, connection: Connected) -> Request | None:
        with self._lock:
            return self._in_flight.first(connection)


class Watchdog:
    """A thread that is there while there is something to look after.

    It goes by real time, and asks no device itself: workers look for it.

    Args:
        poller: Whose looks it waits for, whoever began them.
        workers: Where looks are begun.
        busy: Whether there is anything to look after.
        poll: Polls, and begins to end what is in trouble. It may not return.
        abort_overdue: The same for what has had all its seconds, without asking a device.
        abort_interrupted: The same for all, where the main thread is interrupted in a call.
        seconds: How often it looks.
        patience: The seconds that a look may take. It counts how often it is awake meanwhile, so
            that no look is late because the process was suspended.
    """

    def __init__(
        self,
        poller: Poller,
        workers: Workers,
        *,
        busy: Callable[[], bool],
        poll: Callable[[], object],
        abort_overdue: Callable[[], object],
        abort_interrupted: Callable[[], object],
        seconds: float,
        patience: float,
    ) -> None:
        self._poller = poller
        self._workers = workers
        self._busy = busy
        self._poll = poll
        self._abort_overdue = abort_overdue
        self._abort_interrupted = abort_interrupted
        self._seconds = seconds
        self._turns = max(1, round(patience / seconds))
        self._lock = threading.Lock()  # Of whether the thread is there.
        self._thread: threading.Thread | None = None
        self._call: Future[object] | None = None
        self._woken = threading.Event()

    def start(self) -> None:
        """See to it that it runs; call this when there is something to look after.

        Raises:
            RuntimeError: The system refuses the thread, and what hangs would hang indefinitely.
        """
        WAKEUP.listen()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                WAKEUP.forget()
                self._thread = new_thread("mirrored-watchdog", self._run)
                start(self._thread)

    def wake(self) -> None:
        """Let it see at once whether there is still something to look after."""
        self._woken.set()

    def rest(self) -> None:
        """Return once its threads have ended, where there is nothing to look after any more.

        A look that does not come back is waited for no longer than a second.
        """
        until = time.monotonic() + _REST
        for thread in (self._thread, self._call.thread if self._call else None):
            self.wake()
            while (
                thread is not None
                and thread.is_alive()
                and not self._busy()
                and time.monotonic() < until
            ):
                thread.join(_OFTEN)

    def _goes_on(self) -> bool:
        with self._lock:
            if not self._busy():
                self._thread = None
                return False
            return True

    def _run(self) -> None:
        seen, turns = None, 0
        next_turn = time.monotonic() + self._seconds
        while self._goes_on():
            if self._woken.wait(max(next_turn - time.monotonic(), 0.0)):
                self._woken.clear()
                continue
            next_turn = time.monotonic() + self._seconds
            if WAKEUP.is_overdue():
                self._abort_interrupted()
            looking = self._poller.under_way
            turns = turns + 1 if looking is not None and looking is seen else 0
            seen = looking
            if looking is None:
                self._call = self._workers.call("mirrored-poll", self._poll)
                if not self._call.begun:  # What is late ends all the same.
                    self._abort_overdue()
            elif turns >= self._turns:
                self._abort_overdue()
