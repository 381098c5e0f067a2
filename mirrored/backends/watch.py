"""Waits of the host that look after collectives: a hang becomes an error that says what hung.

Devices wait for each other in a collective, for ever if one of them does not come, and neither they
nor their libraries give up. Here the host does, while it waits for them.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn, TypeVar

from mirrored._interrupt import deliver, is_overdue
from mirrored.backends.calls import Call, pauses
from mirrored.backends.flights import Asker, Connected, Flight, Flights
from mirrored.backends.incident import Incident, elsewhere
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceLostError

__all__ = ["WATCH", "Connected", "Flight", "Watch"]

T = TypeVar("T")

# Seconds between two looks at what is in flight: each asks every device of a collective.
_LOOK_EVERY = 0.01
# From how many in flight on one connection on an `add` looks which of them are done.
_MANY = 64
# Seconds that all of what stops writes to weights, and then all aborts, may take.
_STOP, _ABORT = 30.0, 30.0


class _Ending:
    """Everything in flight, taken out at once because of one collective that failed.

    Attributes:
        error: What the thread that noticed raises, once everything was aborted.
    """

    def __init__(
        self,
        incident: Incident,
        aborts: Sequence[tuple[str, Callable[[], object]]],
        askers: Iterable[Asker],
    ) -> None:
        self.incident = incident
        self.aborts = aborts
        self.askers = askers
        self.error: BaseException | None = None


class Watch:
    """Looks after collectives in flight while the host waits for something.

    One that misses its deadline, or fails, ends all that are in flight, on all connections, since
    devices may wait for each other across them: what writes weights is stopped, communicators are
    aborted, and the thread that noticed raises the error. Threads that wait too, and those that had
    asked for what ended, get an error of their own at their next wait. It keeps no thread; those
    that stop and abort end with that, or, where they never return, with the process.

    Args:
        clock: What time it is, in seconds.
        sleep: Lets the host rest for some seconds.
        stop_seconds: The deadline of all functions given to `before_abort` together.
        abort_seconds: The deadline of all aborts together.

    Attributes:
        clock: What time it is, in seconds.
        abort_seconds: The deadline of all aborts together.
        stuck: Whether the last abort failed: devices may never be done with what they were asked.

    Example:
        >>> watch = Watch()
        >>> answers = iter([False, False, True])
        >>> watch.wait(lambda: next(answers))
        >>> watch.idle
        True
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        *,
        stop_seconds: float = _STOP,
        abort_seconds: float = _ABORT,
    ) -> None:
        self.clock = clock
        self.abort_seconds = abort_seconds
        self._sleep = sleep
        self._stop_seconds = stop_seconds
        # Reentrant: what the garbage collector runs in here may wait for a device.
        self._lock = threading.RLock()
        self._flights = Flights(clock)
        self._stops: list[weakref.WeakMethod[Callable[[], object]]] = []
        self._looked = -math.inf
        self.stuck = False
        self._endings = 0  # How often everything ended.
        self._ending: _Ending | None = None  # What is being aborted now.
        self._last_error: BaseException = CollectiveError("Nothing has ended.")
        self._local = threading.local()

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight, and nothing has ended that this thread has to be told."""
        return not self._flights and self._ending is None and self._asker().lost is None

    # ------------------------------------------------------------------ what is in flight

    def add(self, flight: Flight) -> None:
        """Watch a collective from now on.

        Raises:
            CollectiveError: One that is in flight already has failed; this one was not added.
        """
        if self._flights.of(flight.connection) >= _MANY:
            self.check()
        with self._lock:
            self._flights.add(flight, self._asker())

    def withdraw(self, flight: Flight) -> None:
        """Forget a collective that was not asked for after all."""
        with self._lock:
            self._flights.remove(flight)

    def fail(self, flight: Flight, error: BaseException) -> NoReturn:
        """End everything in flight, since an error was raised while one of it was asked for.

        Args:
            flight: The one.
            error: The error.

        Raises:
            CollectiveError: With all that is known, if the error is one too.
            BaseException: The error itself otherwise.
        """
        ending = None
        with self._lock:
            if self._ending is None and flight in self._flights:
                ending = self._begin_ending(self._flights.incident(flight, cause=error))
        if ending is not None:
            self._raise(ending)
        self.settle()  # It failed since everything ends already, which this says.
        raise error

    def before_abort(self, stop: Callable[[], object]) -> None:
        """Call a bound method before communicators are aborted, and their sums turn into anything.

        It runs in a thread of its own, where waits do not look after collectives, and returns once
        nothing that follows a collective can write what is to be kept.

        Args:
            stop: The method. Its object is not kept alive.
        """
        with self._lock:
            self._stops = [each for each in self._stops if each() is not None]
            self._stops.append(weakref.WeakMethod(stop))

    # ------------------------------------------------------------------ waiting

    def wait(self, done: Callable[[], bool], *, may_break: bool = False) -> None:
        """Return when a function says so, and look after what is in flight meanwhile.

        Args:
            done: Asked again and again; it waits for nothing itself.
            may_break: Whether an interrupt that is held back until the end of a step may act after
                a while. Where this thread has something in flight it may: all of that ends then.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline.
            CollectiveError: One failed, or ended because of another one.
            KeyboardInterrupt: There was an interrupt.
        """
        if self._is_helper():
            self._wait_as_helper(done)
            return
        self._tell()
        with self._lock:
            endings = self._endings - (self._ending is not None)
        for pause in pauses(self.clock):
            finished = self._ask(done)
            if self._endings != endings:  # What is done since then may be so by an abort.
                self.settle()
                raise elsewhere(self._last_error)
            if finished:
                break
            if pause:
                self._look_now_and_then()
                self._let_break(may_break)
                self._sleep(pause)
        self._look_now_and_then()

    def hurry(self, seconds: float) -> None:
        """Let nothing that is in flight have more time than so many seconds from now on.

        Args:
            seconds: How many; infinite: what it was given.
        """
        with self._lock:
            self._flights.until = self.clock() + seconds

    def finish(self, connection: Connected) -> None:
        """Wait until nothing of a connection is in flight.

        Args:
            connection: The connection.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline.
            CollectiveError: One failed, or ended because of another one.
        """

        def finished() -> bool:
            self._look([connection])
            return not self._flights.of(connection)

        self.wait(finished)

    def check(self) -> None:
        """Look after what is in flight, now.

        Raises:
            CollectiveTimeoutError: A collective missed its deadline.
            CollectiveError: One failed, or ended because of another one.
        """
        if not self._is_helper():
            self.settle()
            self._look()

    def settle(self) -> None:
        """Wait until nothing is being aborted.

        Raises:
            CollectiveError: What this thread asked for has ended, by another one's error.
        """
        ending = self._ending
        if ending is not None and not self._is_helper():
            self._rest_until(lambda: ending.error is not None)
        self._tell()

    def lost(self) -> CollectiveError:
        """Return the error of a thread whose work was stopped since a collective failed."""
        return elsewhere(self._last_error)

    def call(self, name: str, function: Callable[[], T], seconds: float = math.inf) -> Call[T]:
        """Call a function in a thread of its own, in which waits look after nothing.

        Args:
            name: The thread's name.
            function: What may never return.
            seconds: How long waits may take there.
        """
        until = self.clock() + seconds

        def call() -> T:
            self._local.until = until
            return function()

        return Call(name, call)

    def _is_helper(self) -> bool:
        """Whether this is the thread of a `call`."""
        return hasattr(self._local, "until")

    def _wait_as_helper(self, done: Callable[[], bool]) -> None:
        for pause in pauses(self.clock):
            if done():
                return
            if self.clock() >= self._local.until:
                raise CollectiveTimeoutError("A device was not done by the deadline of this call.")
            self._sleep(pause)

    def _rest_until(self, over: Callable[[], bool]) -> None:
        for pause in pauses(self.clock):
            if over():
                return
            self._sleep(pause)

    def _asker(self) -> Asker:
        """Return what stands for this thread."""
        asker: Asker | None = getattr(self._local, "asker", None)
        if asker is None:
            asker = self._local.asker = Asker()
        return asker

    def _tell(self) -> None:
        """Raise what this thread has to be told, if anything."""
        asker = self._asker()
        lost, asker.lost = asker.lost, None
        if lost is not None:
            raise elsewhere(lost)

    # ------------------------------------------------------------------ looking

    def _ask(self, done: Callable[[], bool]) -> bool:
        """Return whether it is done; what is in flight ends where a device is lost."""
        try:
            return done()
        except DeviceLostError as error:
            self._end_with(error)
            raise

    def _let_break(self, may_break: bool) -> None:
        """Act on an interrupt that was held back for too long, where this thread may be stopped.

        Where it raises, what is in flight ends: whoever used the devices next would wait for that.
        """
        if not is_overdue():
            return
        with self._lock:
            own = self._flights.has(self._asker())
        if not (own or may_break):
            return
        try:
            deliver()
        except BaseException as error:
            self._end_with(error)
            raise

    def _end_with(self, error: BaseException) -> None:
        """End everything in flight, if anything is, with an error that came from elsewhere."""
        ending = None
        with self._lock:
            known = error is self._last_error  # Raised by a look, within `done`.
            if self._flights and self._ending is None and not known:
                first = self._flights.first()
                ending = self._begin_ending(self._flights.incident(first, cause=error))
        if ending is not None:
            self._raise(ending)

    def _look_now_and_then(self) -> None:
        if self._flights and self.clock() - self._looked >= _LOOK_EVERY:
            self._look()

    def _look(self, connections: Iterable[Connected] | None = None) -> None:
        """Retire what is done; end everything where something of it failed or is late."""
        with self._lock:
            if self._ending is not None:
                return
            self._looked = self.clock()
            incident = self._flights.trouble(connections)
            if incident is None:
                return
            ending = self._begin_ending(incident)
        self._raise(ending)

    # ------------------------------------------------------------------ when something failed

    def _begin_ending(self, incident: Incident) -> _Ending:
        """Take everything out of flight and let a thread end it; the caller holds the lock.

        In a thread, so that an interrupt of the caller does not leave it half done.
        """
        self._ending = ending = _Ending(incident, *self._flights.take_all())
        self._endings += 1
        call = self.call("mirrored-ending", lambda: self._end(ending))
        if not call.begun:
            reason = f"Nothing was aborted: {call.error}."
            self.stuck = True
            self._ended(ending, incident.error([], [reason]))
        return ending

    def _raise(self, ending: _Ending) -> NoReturn:
        """Wait until everything was aborted, and raise the error."""
        self._rest_until(lambda: ending.error is not None)
        self._asker().lost = None
        raise ending.error or ending.incident.error([], [])

    def _end(self, ending: _Ending) -> None:
        """Stop what writes weights, and abort."""
        error: BaseException = CollectiveError("Collectives could not be aborted.")
        try:
            stops = [stop for each in self._stops if (stop := each()) is not None]
            not_stopped = self._all_called(
                [(f"mirrored-stop-{type(_owner(stop)).__name__}", stop) for stop in stops],
                self._stop_seconds,
            )
            not_aborted = self._all_called(
                [(f"mirrored-abort-{names}", abort) for names, abort in ending.aborts],
                self.abort_seconds,
            )
            self.stuck = bool(not_aborted)
            error = ending.incident.error(not_stopped, not_aborted)
        except Exception as unexpected:
            error.__cause__ = unexpected
        finally:
            self._ended(ending, error)

    def _ended(self, ending: _Ending, error: BaseException) -> None:
        with self._lock:
            for asker in ending.askers:
                asker.lost = error
            self._last_error = error
            self._ending = None
            ending.error = error

    def _all_called(
        self, functions: Sequence[tuple[str, Callable[[], object]]], seconds: float
    ) -> list[str]:
        """Call functions, each in a thread of its own; return what went wrong, in sentences."""
        until = self.clock() + seconds
        calls = [self.call(name, function, seconds) for name, function in functions]
        self._rest_until(lambda: all(call.is_over for call in calls) or self.clock() >= until)
        return list(_problems(calls, seconds))


def _problems(calls: Iterable[Call[object]], seconds: float) -> Iterator[str]:
    for call in calls:
        if not call.is_over:
            yield f"The thread {call.name!r} did not come back within {seconds:.4g} seconds."
        elif call.error is not None:
            yield f"The thread {call.name!r} failed: {call.error}"


def _owner(method: Callable[[], object]) -> object:
    return getattr(method, "__self__", method)


# What the process has in flight.
WATCH = Watch()
