"""Watches collectives: a hang becomes an error that names what hung.

Devices wait for each other in a collective, indefinitely if one is missing, and neither they
nor their libraries give up. Here the host does, while it waits for them or is kept by them.
"""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from mirrored._interrupt import deliver, is_overdue
from mirrored.backends.communication.abort import Abort, abort_all, stop_writes
from mirrored.backends.communication.failures import elsewhere, no_thread, without_frames
from mirrored.backends.communication.futures import Workers, pauses
from mirrored.backends.communication.handle import CallLock
from mirrored.backends.communication.in_flight import Asker, Connected, InFlight, Request
from mirrored.backends.communication.poll import Poller, Trouble, Watchdog
from mirrored.errors import CollectiveError, DeviceLostError

# Seconds between two looks at what is in flight: each asks every device of a collective.
_POLL_EVERY = 0.01
# From how many in flight on one connection on an `add` looks which of them are done.
_MANY = 64
# Seconds that all of what stops writes to weights, and then all aborts, may take.
_STOP, _ABORT = 30.0, 30.0
# Seconds between two looks of the watchdog, and those that a look may take.
_WATCHDOG, _POLL = 1.0, 10.0


class Watch:
    """Looks after collectives in flight while the host waits for something.

    One that misses its deadline, or fails, ends all that are in flight, on all connections, since
    devices may wait for each other across them: what writes weights is stopped, communicators are
    aborted, and the thread that noticed raises the error. Threads that wait too, and those that had
    asked for what ended, get one like it at their next wait. Waits look, and so does a thread that
    is there while something is in flight: the driver may keep a host that waits for nothing here.
    No lock is held while a device is asked, for the driver may keep who asks too; what is past its
    deadline by then ends without an answer. Threads that stop and abort end with that, or, where
    they never return, with the process.

    Args:
        clock: What time it is, in seconds.
        sleep: Lets the host rest for some seconds.
        stop_seconds: The deadline of all functions given to `before_abort` together.
        abort_seconds: The deadline of all aborts together.
        watchdog_seconds: How often, by real time, a thread of its own looks; None: there is none.
        poll_seconds: The real seconds that a look may take, where there is such a thread.

    Attributes:
        workers: Start calls that may never return; waits in those look after nothing.
        call_lock: Held by who calls what connects devices.
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
        watchdog_seconds: float | None = None,
        poll_seconds: float = _POLL,
    ) -> None:
        self.clock = clock
        self.stop_seconds = stop_seconds
        self.abort_seconds = abort_seconds
        self.call_lock = CallLock()
        self._sleep = sleep
        self.workers = Workers(clock, sleep)
        # Reentrant: what the garbage collector runs in here may wait for a device.
        self._lock = threading.RLock()
        self._in_flight = InFlight(clock)
        self._stops: list[weakref.WeakMethod[Callable[[], object]]] = []
        self._poller = Poller(self._in_flight, self._lock, clock)
        self.stuck = False
        self._abort_count = 0  # How often everything ended.
        self._aborting: Abort | None = None  # What is being aborted now.
        self._kept: list[Sequence[Request]] = []  # What devices may use indefinitely.
        self._last_error: BaseException = CollectiveError("Nothing has ended.")
        self._local = threading.local()
        self._watchdog: Watchdog | None = None
        if watchdog_seconds is not None:
            self._watchdog = Watchdog(
                self._poller,
                self.workers,
                busy=lambda: bool(self._in_flight) or self._aborting is not None,
                poll=self._poll_quietly,
                abort_overdue=self._abort_overdue,
                abort_interrupted=self._abort_interrupted,
                seconds=watchdog_seconds,
                patience=poll_seconds,
            )

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight, and nothing has ended that this thread has to be told."""
        return not self._in_flight and self._aborting is None and self._asker().lost is None

    # ------------------------------------------------------------------ what is in flight

    def add(self, request: Request) -> None:
        """Watch a collective from now on.

        Raises:
            CollectiveError: One that is in flight already has failed, or the system refuses the
                thread that looks after them; this one was not added.
        """
        if self._in_flight.of(request.connection) >= _MANY:
            self.check()
        with self._lock:
            self._in_flight.add(request, self._asker())
        try:
            if self._watchdog is not None:
                self._watchdog.start()
        except RuntimeError as refused:
            self.withdraw(request)
            names, what = request.connection.names, request.what
            raise no_thread(names, what, "To look after a sum", refused) from refused

    def withdraw(self, request: Request) -> None:
        """Forget a collective that was not asked for after all."""
        with self._lock:
            self._in_flight.remove(request)

    def fail(self, request: Request, error: BaseException) -> NoReturn:
        """End everything in flight, since an error was raised while one of it was asked for.

        Raises:
            CollectiveError: With all that is known, if the error is one too.
            BaseException: The error itself otherwise.
        """
        self._abort_and_raise(Trouble(request, request.ranks_done(), cause=error))
        self.withdraw(request)  # It failed since everything ends already, which this says.
        self.settle()
        raise error

    def before_abort(self, stop: Callable[[], object]) -> None:
        """Call a bound method before communicators are aborted, and their sums turn into anything.

        It runs in a thread of its own, where waits do not look after collectives, and returns at
        once: it writes to host memory, and takes no lock. When it returns nothing that follows a
        collective can write what is to be kept. Its object is not kept alive.
        """
        with self._lock:
            self._stops = [known for known in self._stops if known() is not None]
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
        if self.workers.is_worker:
            self.workers.wait(done)
            return
        with self._lock:
            aborts = self._abort_count - (self._aborting is not None)
        self._tell()  # Of what ended before: whatever ends from here on is counted.
        for pause in pauses(self.clock):
            finished = self._ask(done)
            if self._abort_count != aborts:  # What is done since then may be so by an abort.
                self.settle()
                raise elsewhere(self._last_error)
            if finished:
                break
            if pause:
                self._poll_now_and_then()
                self._let_break(may_break)
                self._sleep(pause)
        self._poll_now_and_then()

    def hurry(self, seconds: float) -> None:
        """Let nothing that is in flight have more than N seconds from now."""
        with self._lock:
            self._in_flight.until = self.clock() + seconds

    def finish(self, connection: Connected) -> None:
        """Wait until nothing of a connection is in flight; it raises as `wait` does."""

        def finished() -> bool:
            self._poll([connection])
            return not self._in_flight.of(connection)

        self.wait(finished)
        self._rest()

    def check(self) -> None:
        """Look after what is in flight, now; it raises as `wait` does."""
        if not self.workers.is_worker:
            self.settle()
            self._poll()

    def settle(self) -> None:
        """Wait until nothing is being aborted; raise where this thread had asked for what ended."""
        abort = self._aborting
        if abort is not None and not self.workers.is_worker:
            self.workers.rest_until(lambda: abort.error is not None)
        self._tell()

    def lost(self) -> CollectiveError | DeviceLostError:
        """Return the error of a thread whose work was stopped since a collective failed."""
        return elsewhere(self._last_error)

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
            self._rest()
            raise elsewhere(lost)

    def _rest(self) -> None:
        """Let the watchdog end, where nothing is in flight."""
        if self._watchdog is not None and not self.workers.is_worker:
            self._watchdog.rest()

    # ------------------------------------------------------------------ looking

    def _ask(self, done: Callable[[], bool]) -> bool:
        """Return whether it is done; what is in flight ends where a device is lost."""
        aborts = self._abort_count
        try:
            return done()
        except DeviceLostError as error:
            if self._abort_count == aborts:  # Else a look, within `done`, has found the same.
                self._abort_for(error)
            self.settle()  # Another thread may have: then this one is told all that is known.
            raise

    def _let_break(self, may_break: bool) -> None:
        """Act on an interrupt that was held back for too long, where this thread may be stopped.

        Where it raises, what is in flight ends: whoever used the devices next would wait for that.
        """
        if not is_overdue():
            return
        with self._lock:
            own = self._in_flight.has(self._asker())
        if not (own or may_break):
            return
        try:
            deliver()
        except BaseException as error:
            self._abort_for(error)
            raise

    def _abort_for(self, error: BaseException) -> None:
        """End everything in flight, if anything is, with an error that came from elsewhere."""
        while self._aborting is None:
            with self._lock:
                first = self._in_flight.first()
            if first is None:
                return
            self._abort_and_raise(Trouble(first, first.ranks_done(), cause=error))

    def _poll_now_and_then(self) -> None:
        if self._in_flight and self.clock() - self._poller.last >= _POLL_EVERY:
            self._poll()

    def _poll(self, connections: Iterable[Connected] | None = None) -> None:
        """Retire what is done; raise where something of it failed or is late."""
        abort = self._poll_quietly(connections)
        if abort is not None:
            self._raise(abort)

    def _poll_quietly(self, connections: Iterable[Connected] | None = None) -> Abort | None:
        """Retire what is done, and begin the end of everything where something is in trouble."""
        if self._aborting is not None:
            return None
        trouble = self._poller.poll(connections)
        return None if trouble is None else self._begin_abort(trouble)

    def _abort_overdue(self) -> None:
        """End everything where something is late by the books."""
        trouble = self._poller.overdue()
        if trouble is not None:
            self._begin_abort(trouble)

    def _abort_interrupted(self) -> None:
        """End everything: the main thread is inside a library, and an interrupt waits for it."""
        with self._lock:
            first = self._in_flight.first()
        if first is not None:
            said = "an interrupt came while the main thread was inside a call that did not return"
            self._begin_abort(Trouble(first, first.ranks_unknown(), failure=said))

    # ------------------------------------------------------------------ when something failed

    def _begin_abort(self, trouble: Trouble) -> Abort | None:
        """Take everything out of flight and let a thread end it; None: that was done before.

        In a thread, so that an interrupt of the caller does not leave it half done.
        """
        request = trouble.request
        with self._lock:
            if self._aborting is not None or request not in self._in_flight:
                return None
            failed = self._in_flight.failed(**trouble._asdict())
            self._aborting = abort = Abort(failed, self._in_flight.take_all())
            self._abort_count += 1
            self._poller.give_up()
            call = self.workers.call("mirrored-abort-all", lambda: self._run_abort(abort))
        if not call.begun:
            self.stuck = True
            self._finish_abort(abort, failed.error([], [f"Nothing was aborted: {call.error}."]))
        return abort

    def _abort_and_raise(self, trouble: Trouble) -> None:
        """End everything, and raise the error, unless that is done already."""
        abort = self._begin_abort(trouble)
        if abort is not None:
            self._raise(abort)

    def _raise(self, abort: Abort) -> NoReturn:
        """Wait until everything was aborted, and raise the error."""
        self.workers.rest_until(lambda: abort.error is not None)
        self._asker().lost = None
        self._rest()
        raise abort.error or abort.failed.error([], [])

    def _run_abort(self, abort: Abort) -> None:
        """Stop what writes weights, and abort."""
        error: BaseException = CollectiveError("Collectives could not be aborted.")
        try:
            stops = [stop for reference in self._stops if (stop := reference()) is not None]
            not_stopped = stop_writes(self.workers, stops, self.stop_seconds)
            not_aborted = abort_all(self.workers, abort.taken.aborts, self.abort_seconds)
            self.stuck = bool(not_aborted)
            error = abort.failed.error(not_stopped, not_aborted)
        except Exception as unexpected:
            error.__cause__ = unexpected
        finally:
            self._finish_abort(abort, error)

    def _finish_abort(self, abort: Abort, error: BaseException) -> None:
        """Tell everybody; without the lock, so that nothing keeps this thread."""
        if self.stuck:
            self._kept.append(abort.taken.requests)
        kept = without_frames(error)
        for asker in abort.taken.askers:
            asker.lost = kept
        for notify in {request.notify for request in abort.taken.requests}:
            if notify is not None:
                notify(kept)
        self._last_error = kept
        self._aborting = None
        abort.error = error
        if self._watchdog is not None:
            self._watchdog.wake()


# What the process has in flight.
WATCH = Watch(watchdog_seconds=_WATCHDOG)
