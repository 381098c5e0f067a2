"""The collectives in flight, and the threads and the communicator that run them.

Calls of libraries and drivers may hang where the hardware does, so they run in threads of their
own, and nobody waits for one without looking whether it was given up. The books of what is late are
separate: they stay open while such a call keeps its thread.
"""

import math
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from mirrored._threads import new_thread, start
from mirrored.backends.communication.collective_failures import FailedCollective, named
from mirrored.backends.stream_backend import Communicator, Event, StreamBackend
from mirrored.errors import CollectiveError, CollectiveTimeoutError

T = TypeVar("T")

# Seconds for which a wait polls without sleeping, then sleeps, at first and at most. Most waits are
# for work that is nearly done, and a sleep of the host takes some 50 microseconds at the least. The
# longest sleep is what a wait ends late by, while a card stands still; one that took longer than
# steps do may end later.
_EAGER = 200e-6
_FIRST_PAUSE, _LONGEST_PAUSE = 20e-6, 1e-4
_LONG_WAIT, _PAUSE_OF_LONG_WAITS = 0.1, 1e-3


def pauses(clock: Callable[[], float]) -> Iterator[float]:
    """Yield how long to sleep between one look and the next, in seconds, without end.

    Example:
        >>> from itertools import count, islice
        >>> [round(1e6 * pause) for pause in islice(pauses(count(0, 1e-4).__next__), 9)]
        [0, 20, 40, 80, 100, 100, 100, 100, 100]
    """
    begun = clock()
    while clock() - begun < _EAGER:
        yield 0.0
    pause = _FIRST_PAUSE
    while True:
        yield pause
        longest = _LONGEST_PAUSE if clock() - begun < _LONG_WAIT else _PAUSE_OF_LONG_WAITS
        pause = min(2 * pause, longest)


class _Lent:
    """A call in a parked thread, as a thread of its own would be."""

    def __init__(self, name: str, function: Callable[[], object]) -> None:
        self.name = name
        self._function = function
        self._over = threading.Event()

    def run(self) -> None:
        """Call the function, in the thread."""
        try:
            self._function()
        finally:
            self._over.set()

    def is_alive(self) -> bool:
        """Whether the function has not returned yet."""
        return not self._over.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for it, for N seconds."""
        self._over.wait(timeout)


class Reserve:
    """Daemon threads that are parked until the process ends, when Python 3.12 and later start none.

    Attributes:
        needed: Whether there are any.
    """

    def __init__(self) -> None:
        self.needed = sys.version_info >= (3, 12)
        self._parked: deque[queue.SimpleQueue[_Lent]] = deque()
        self._started = 0
        self._process = os.getpid()
        self._lending = False

    def fill(self, count: int) -> None:
        """Park N threads, as far as the system allows it."""
        if not self.needed:
            return
        if self._process != os.getpid():  # Those of a process are not in its fork.
            self._parked.clear()
            self._process, self._started = os.getpid(), 0
        while self._started < count:
            calls: queue.SimpleQueue[_Lent] = queue.SimpleQueue()
            try:
                start(new_thread("mirrored-parked", self._run, calls))
            except RuntimeError:
                return
            self._started += 1
            self._parked.append(calls)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let calls that get no thread of their own have parked ones in this block."""
        self._lending = True
        try:
            yield
        finally:
            self._lending = False

    def call(self, name: str, function: Callable[[], object]) -> _Lent | None:
        """Call a function in a parked thread; None: there is none for it."""
        if not self._lending or self._process != os.getpid():
            return None
        try:
            calls = self._parked.popleft()
        except IndexError:
            return None
        lent = _Lent(name, function)
        calls.put(lent)
        return lent

    def _run(self, calls: "queue.SimpleQueue[_Lent]") -> None:
        while True:
            calls.get().run()
            self._parked.append(calls)


RESERVE = Reserve()


class Future(Generic[T]):
    """A function's call in a daemon thread, which begins now.

    Args:
        name: The thread's name, shown where a process hangs.
        function: What is called.

    Attributes:
        name: The thread's name.
        error: What the function raised, or why there could be no thread; None: nothing so far.
        begun: Whether there is a thread. The system may refuse one, and so does an interpreter that
            ends.
        thread: The thread.

    Example:
        >>> call = Future("adds", lambda: 1 + 1)
        >>> while not call.is_over:
        ...     pass
        >>> call.result()
        2
    """

    def __init__(self, name: str, function: Callable[[], T]) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.begun = True
        self._function = function
        self._values: list[T] = []
        self._unwanted: Callable[[T], object] | None = None
        self._lock = threading.Lock()
        thread = new_thread(name, self._run)
        self.thread: threading.Thread | _Lent = thread
        try:
            start(thread)
        except RuntimeError as error:
            lent = RESERVE.call(name, self._run)
            if lent is None:
                self.error, self.begun = error, False
            else:
                self.thread = lent

    @property
    def is_over(self) -> bool:
        """Whether the function has returned, or raised."""
        return not self.thread.is_alive()

    def result(self) -> T:
        """Return what the function returned, once it is over, or raise what it raised."""
        if self.error is not None:
            raise self.error
        if not self._values:
            raise RuntimeError(f"A call has a result once it is over. Received: {self.name!r}.")
        return self._values[0]

    def abandon(self, unwanted: Callable[[T], object]) -> None:
        """Let the thread give what may still be returned to somebody who disposes of it."""
        with self._lock:
            self._unwanted = unwanted
            returned = bool(self._values)
        if returned:  # Just now: in a thread, since it may never return either.
            Future(self.name, lambda: unwanted(self._values[0]))

    def _run(self) -> None:
        try:
            value = self._function()
            with self._lock:
                self._values.append(value)
                unwanted = self._unwanted
            if unwanted is not None:
                unwanted(value)
        except BaseException as error:
            self.error = error


class Workers:
    """Starts calls that may never return, and lets threads wait by one clock, in seconds."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self.clock = clock
        self.sleep = sleep
        self._local = threading.local()

    def call(self, name: str, function: Callable[[], T], seconds: float = math.inf) -> Future[T]:
        """Call a function in a thread of its own, in which waits end N seconds from now."""
        until = self.clock() + seconds

        def call() -> T:
            self._local.until = until
            return function()

        return Future(name, call)

    @property
    def is_worker(self) -> bool:
        """Whether this thread is that of a `call`."""
        return hasattr(self._local, "until")

    def wait(self, done: Callable[[], bool]) -> None:
        """Return when a function says so, in the thread of a `call`.

        Raises:
            CollectiveTimeoutError: It was not so by the call's deadline.
        """
        _began = time.monotonic()  # Reports of stalls read it.
        for pause in pauses(self.clock):
            if done():
                return
            if self.clock() >= self._local.until:
                raise CollectiveTimeoutError("A device was not done by the deadline of this call.")
            self.sleep(pause)

    def rest_until(self, over: Callable[[], bool]) -> None:
        """Return when a function says so, in any thread."""
        _began = time.monotonic()  # Reports of stalls read it.
        for pause in pauses(self.clock):
            if over():
                return
            self.sleep(pause)

    def all_over(self, calls: Sequence[Future[Any]], until: float, seconds: float) -> list[str]:
        """Wait until calls are over, but not indefinitely; return what went wrong, in sentences.

        Until then they had N seconds.
        """
        self.rest_until(lambda: all(call.is_over for call in calls) or self.clock() >= until)
        return list(_problems(calls, seconds))


def _problems(calls: Iterable[Future[Any]], seconds: float) -> Iterator[str]:
    for call in calls:
        if not call.is_over:
            yield f"The thread {call.name!r} did not return within {seconds:.4g} seconds."
        elif call.error is not None:
            yield f"The thread {call.name!r} failed: {str(call.error).rstrip('.')}."


# How many collectives that were done are kept, a connection, for messages.
_REMEMBERED = 8


class Connected(Protocol):
    """Devices whose collectives are watched; `Connection` is the class of them."""

    @property
    def names(self) -> Sequence[str]:
        """What errors call each device, by rank."""

    def failure(self) -> str | None:
        """Return what has gone wrong beside the calls, None where nothing has; do not block."""

    def disconnect(self) -> Callable[[], object] | None:
        """Forget how the devices are connected, at once, and return what aborts that, if any."""


@dataclass(eq=False)
class Asker:
    """A thread that asks for collectives; `lost` is why what it asked for has ended, until told."""

    lost: BaseException | None = None


@dataclass(eq=False)
class Request:
    """A collective that was asked for and was not seen done yet.

    Attributes:
        connection: The devices.
        what: What is summed.
        step: In which run of its recorded step it is, if it is of one.
        timeout: Seconds that it has from when it is asked for, or from when the one before it on
            these devices is seen done if that is later; may be infinite.
        done: Whether it is done on every rank. It waits for nothing, and may raise.
        ranks: For each rank whether it is done there, for messages.
        notify: Called with the error where it ended because one failed, or None.
        asked: When it was asked for.
        asker: By whom.
        is_lost: Whether it ended since one failed, this one or another.
    """

    connection: Connected
    what: str
    step: int | None
    timeout: float
    done: Callable[[], bool]
    ranks: Callable[[], Sequence[bool]] | None = None
    notify: Callable[[BaseException], object] | None = field(default=None, init=False)
    asked: float = field(default=0.0, init=False)
    asker: Asker = field(default_factory=Asker, init=False)
    is_lost: bool = field(default=False, init=False)

    def ranks_done(self) -> Sequence[bool | None]:
        """Ask for each rank whether it is done, as far as that can be told.

        It may not return where the driver keeps the thread.
        """
        if self.ranks is None:
            return ()
        try:
            return tuple(self.ranks())
        except Exception:  # A device that is lost does not tell.
            return self.ranks_unknown()

    def ranks_unknown(self) -> Sequence[bool | None]:
        """Return that nobody knows, for each rank."""
        return (None,) * len(self.connection.names)


class Taken(NamedTuple):
    """All that was in flight; its requests keep alive what the devices may still use."""

    requests: Sequence[Request]
    aborts: Sequence[tuple[str, Callable[[], object]]]
    askers: Collection[Asker]


class _Queue:
    """The collectives of one connection, which its devices do one after the other."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.completed: deque[str] = deque(maxlen=_REMEMBERED)
        self.seen_done = -math.inf  # When the last one was.


class InFlight:
    """All collectives in flight. One thread at a time may use it.

    Attributes:
        until: When all of them have to be done, whatever time each was given.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.until = math.inf
        self._clock = clock
        self._lines: weakref.WeakKeyDictionary[Connected, _Queue] = weakref.WeakKeyDictionary()
        self._active: dict[Connected, _Queue] = {}  # Those with something in flight.

    def __bool__(self) -> bool:
        return bool(self._active)

    def __contains__(self, request: Request) -> bool:
        line = self._active.get(request.connection)
        return line is not None and request in line.requests

    def of(self, connection: Connected) -> int:
        """Return how many are in flight on one connection."""
        line = self._active.get(connection)
        return 0 if line is None else len(line.requests)

    def connections(self) -> Sequence[Connected]:
        """Return those with something in flight."""
        return tuple(self._active)

    def first(self, connection: Connected | None = None) -> Request | None:
        """Return what has been in flight for longest, on one connection or the first, if any."""
        if connection is None:
            connection = next(iter(self._active), None)
        line = None if connection is None else self._active.get(connection)
        return None if line is None else line.requests[0]

    def has(self, asker: Asker) -> bool:
        """Return whether a thread has something in flight."""
        return any(item.asker is asker for line in self._active.values() for item in line.requests)

    def add(self, request: Request, asker: Asker) -> None:
        """Add one that is asked for now, by a thread."""
        request.asked, request.asker = self._clock(), asker
        line = self._lines.setdefault(request.connection, _Queue())
        line.requests.append(request)
        self._active[request.connection] = line

    def remove(self, request: Request) -> None:
        """Forget one, if it is in flight."""
        if request in self:
            self._active[request.connection].requests.remove(request)
            self._forget_empty(request.connection)

    def retire(self, request: Request) -> None:
        """Note that one was seen done just now, if it is in flight and the first of its devices."""
        if self.first(request.connection) is request:
            line = self._active[request.connection]
            line.requests.popleft()
            line.seen_done = self._clock()
            line.completed.append(named(request.what, request.step))
            self._forget_empty(request.connection)

    def is_late(self, request: Request) -> bool:
        """Return whether one that is in flight has had all its seconds."""
        return self._clock() - self._begun(request) >= self._timeout(request)

    def overdue(self) -> Request | None:
        """Return one that has had all its seconds, by the books; None: there is none."""
        firsts = (line.requests[0] for line in self._active.values())
        return next(filter(self.is_late, firsts), None)

    def failed(
        self,
        request: Request,
        *,
        cause: BaseException | None = None,
        failure: str | None = None,
        late: bool = False,
        done: Sequence[bool | None] = (),
    ) -> FailedCollective:
        """Return what is known of one that is in flight; see `poll.Trouble`."""
        return FailedCollective(
            names=tuple(request.connection.names),
            what=request.what,
            step=request.step,
            elapsed=self._clock() - self._begun(request),
            timeout=self._timeout(request),
            late=late,
            done=done,
            completed=tuple(self._lines[request.connection].completed),
            cause=cause,
            failure=failure,
            alone=request.notify is None,
        )

    def take_all(self) -> Taken:
        """Empty it and let the connections forget how they are connected."""
        requests: list[Request] = []
        aborts: list[tuple[str, Callable[[], object]]] = []
        for connection, line in self._active.items():
            abort = connection.disconnect()
            if abort is not None:
                aborts.append(("+".join(connection.names), abort))
            requests += line.requests
            line.requests.clear()
            line.completed.clear()
        self._active.clear()
        for request in requests:
            request.is_lost = True
        return Taken(requests, aborts, {request.asker for request in requests})

    def _begun(self, request: Request) -> float:
        """Return since when it counts its seconds."""
        return max(request.asked, self._lines[request.connection].seen_done)

    def _timeout(self, request: Request) -> float:
        """Return how many seconds it has."""
        return min(request.timeout, max(self.until - self._begun(request), 0.0))

    def _forget_empty(self, connection: Connected) -> None:
        if not self._active[connection].requests:
            del self._active[connection]


# Seconds between two looks of a waiting thread whether the call of another one was given up.
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
        why = "Another thread does not return from a call of a collective that was aborted"
        names, task = hung.connection.names, hung.what
    return CollectiveTimeoutError(
        f"{why}. Received: {', '.join(names)}: {task}. If it hangs, this process cannot use the "
        "devices any more: end it, and continue from the last checkpoint.",
        devices=names,
        what=task,
    )
