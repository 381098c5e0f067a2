"""Calls that may never return, each in its own thread, and how the host polls them.

Connecting devices, and letting go of them, can hang where the hardware does; a caller goes on.
"""

import math
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from mirrored._threads import new_thread, start
from mirrored.errors import CollectiveTimeoutError

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
        name: The thread's name, for those who look where a process hangs.
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
        for pause in pauses(self.clock):
            if done():
                return
            if self.clock() >= self._local.until:
                raise CollectiveTimeoutError("A device was not done by the deadline of this call.")
            self.sleep(pause)

    def rest_until(self, over: Callable[[], bool]) -> None:
        """Return when a function says so, in any thread."""
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
            yield f"The thread {call.name!r} did not come back within {seconds:.4g} seconds."
        elif call.error is not None:
            yield f"The thread {call.name!r} failed: {str(call.error).rstrip('.')}."
