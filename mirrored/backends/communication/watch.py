"""Watches collectives: a hang becomes an error that names what hung.

Devices wait for each other in a collective, indefinitely if one is missing, and neither they
nor their libraries give up. Here the host does, while it waits for them or is kept by them: it
polls what is in flight, without holding a lock, and stops writes and aborts communicators where
something has failed.
"""

import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, NoReturn

from mirrored._interrupt import WAKEUP, deliver, is_overdue
from mirrored._threads import new_thread, start
from mirrored.backends.communication.collective_failures import (
    FailedCollective,
    elsewhere,
    no_thread,
    without_frames,
)
from mirrored.backends.communication.in_flight import (
    Asker,
    CallLock,
    Connected,
    Future,
    InFlight,
    Request,
    Taken,
    Workers,
    pauses,
)
from mirrored.errors import CollectiveError, DeviceLostError

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
        self, in_flight: InFlight, lock: AbstractContextManager[object], clock: Callable[[], float]
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
        poller: The poller that it waits for, whichever thread polls.
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


Function = Callable[[], object]

# Which part of their time stops have one after the other, before the rest is called beside them.
_IN_TURN = 1 / 30


class Abort:
    """Everything in flight, taken out at once because of one collective that failed.

    `error` is what the thread that noticed raises, once everything was aborted.
    """

    def __init__(self, failed: FailedCollective, taken: Taken) -> None:
        self.failed = failed
        self.taken = taken
        self.error: BaseException | None = None


def stop_writes(workers: Workers, stops: Sequence[Function], seconds: float) -> list[str]:
    """Call what stops writes to weights, one after the other; return what went wrong.

    They are stores into host memory, done at once. Where one does not return the others are called
    all the same, in threads of their own. All of them together have N seconds.
    """
    left = deque(stops)
    failed: list[str] = []
    until = workers.clock() + seconds
    first: Future[object] = workers.call(
        _named("stop", stops), lambda: _in_turn(left, failed), seconds
    )
    if not first.begun:
        _in_turn(left, failed)
        return failed
    prompt = workers.clock() + seconds * _IN_TURN
    workers.rest_until(lambda: first.is_over or workers.clock() >= prompt)
    calls = [first]
    while stop := _next(left):
        calls.append(workers.call(_named("stop", [stop]), stop, seconds))
    return [*workers.all_over(calls, until, seconds), *failed]


def abort_all(
    workers: Workers, aborts: Sequence[tuple[str, Function]], seconds: float
) -> list[str]:
    """Abort communicators, all at once, within N seconds; return what went wrong."""
    until = workers.clock() + seconds
    calls = [workers.call(f"mirrored-abort-{names}", abort, seconds) for names, abort in aborts]
    return workers.all_over(calls, until, seconds)


def _in_turn(left: deque[Function], failed: list[str]) -> None:
    while stop := _next(left):
        try:
            stop()
        except Exception as error:
            message = str(error).rstrip(".")
            failed.append(f"Stopping the writes of a {_owner(stop)} failed: {message}.")


def _next(left: deque[Function]) -> Function | None:
    try:
        return left.popleft()
    except IndexError:  # Perhaps another thread took the last one.
        return None


def _named(verb: str, stops: Sequence[Function]) -> str:
    return "-".join(("mirrored", verb, *dict.fromkeys(map(_owner, stops))))


def _owner(method: Function) -> str:
    return type(getattr(method, "__self__", method)).__name__


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
    No lock is held while a device is asked, for the driver may block that thread too; what is past
    its deadline by then ends without an answer. Threads that stop and abort end with that, or,
    where they never return, with the process.

    Args:
        clock: What time it is, in seconds.
        sleep: Lets the host rest for some seconds.
        stop_seconds: The deadline of all functions given to `before_abort` together.
        abort_seconds: The deadline of all aborts together.
        watchdog_seconds: How often, by real time, a thread of its own looks; None: there is none.
        poll_seconds: The real seconds that a look may take, where there is such a thread.

    Attributes:
        workers: Start calls that may never return; waits in those look after nothing.
        call_lock: Held during calls of the library that connects devices.
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
        _began = time.monotonic()  # Reports of stalls read it.
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
            self.settle()  # Another thread may have: then this one raises all that is known.
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
