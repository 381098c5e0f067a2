"""A clock that goes on when the library sleeps, and not while one of its threads has work to do.

Deadlines of hours are over at once with it, and none is missed because a machine is slow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mirrored.backends.communication.watch import Watch

# How the names of the threads begin in which the library makes calls that may never return.
_CALLS = tuple(
    f"mirrored-{verb}" for verb in ("abort", "call", "close", "connect", "poll", "stop", "test")
)
# Real seconds after which a test is said to hang.
_PATIENCE = 60.0

# Threads in calls that do not return, each with whether that is still so.
_stuck: dict[threading.Thread, Callable[[], bool]] = {}


@contextmanager
def stuck(still: Callable[[], bool]) -> Iterator[None]:
    """Let time go on beside this thread, which does not go on within the block.

    Args:
        still: Whether it does not go on.
    """
    thread = threading.current_thread()
    _stuck[thread] = still
    try:
        yield
    finally:
        del _stuck[thread]


class FakeTime:
    """A clock that stands still while the library's threads run, and goes on when it sleeps.

    It waits for threads in which the library makes calls, and for those whose names begin with
    "mirrored-test", until they sleep by this clock as well, or are `stuck`.

    Attributes:
        now: What time it is, in seconds.
    """

    # Seconds that reading the clock takes, so that polling without sleeping comes to an end.
    _TICK = 1e-5

    def __init__(self) -> None:
        self.now = 0.0
        self._wakes: dict[threading.Thread, float] = {}  # Who sleeps, and until when.
        self._lock = threading.Lock()

    def clock(self) -> float:
        """Return what time it is, in seconds."""
        with self._lock:
            self.now += self._TICK
            return self.now

    def sleep(self, seconds: float) -> None:
        """Return when the clock has come so far, as it does once nobody else has work to do."""
        thread = threading.current_thread()
        give_up = time.monotonic() + _PATIENCE
        with self._lock:
            self._wakes[thread] = self.now + seconds
        while not self._is_time(thread):
            if time.monotonic() > give_up:
                raise TimeoutError(f"Threads go on and on: {threading.enumerate()}")
            time.sleep(1e-5)

    def _is_time(self, thread: threading.Thread) -> bool:
        """Return whether a thread wakes; let the clock go on where it is the next that does."""
        with self._lock:
            due = self._wakes[thread]
            others = [each for each in threading.enumerate() if each is not thread]
            if due > self.now and any(self._goes_before(each, due) for each in others):
                return False
            del self._wakes[thread]
            self.now = max(self.now, due)
            return True

    def _goes_before(self, thread: threading.Thread, due: float) -> bool:
        """Return whether a thread has something to do before a time."""
        if thread in self._wakes:
            return self._wakes[thread] < due
        return thread.name.startswith(_CALLS) and not _is_stuck(thread)

    def watch(self, **options: Any) -> Watch:
        """Return a watch that goes by this clock."""
        return Watch(self.clock, self.sleep, **options)


def threads_of_calls() -> list[str]:
    """Return the names of the threads in which the library makes calls that do not return.

    It waits for those that are about to end.
    """
    give_up = time.monotonic() + _PATIENCE
    while True:
        running = [each for each in threading.enumerate() if each.name.startswith(_CALLS)]
        if all(map(_is_stuck, running)) or time.monotonic() > give_up:
            return [each.name for each in running]
        time.sleep(1e-4)


def _is_stuck(thread: threading.Thread) -> bool:
    still = _stuck.get(thread)
    return still is not None and still()
