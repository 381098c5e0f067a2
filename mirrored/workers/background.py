"""Sums in the background, while a worker computes the next values to sum.

One thread makes them, in the order in which they were begun, which is the same on all workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from numpy.typing import NDArray

from mirrored import _interrupt
from mirrored._threads import new_thread, start

_OFTEN = 0.05  # Seconds after which who waits looks whether it was interrupted.
_LONGEST = 5.0  # Seconds that a sum is waited for that has failed.

Sum = Callable[[NDArray[Any], NDArray[Any], str], None]


class PendingSum:
    """A sum that was begun; until it is over its arrays belong to it."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._error: BaseException | None = None

    def wait(self) -> None:
        """Return when the sum is in its place.

        Raises:
            WorkerError: Another worker failed, ended, or made another call.
        """
        _began = time.monotonic()  # Reports of stalls read it.
        while not self._over.wait(_OFTEN):
            if _interrupt.is_overdue():
                _interrupt.deliver()
        if self._error is not None:
            raise self._error

    def settle(self) -> None:
        """Return when the arrays are free again, as they soon are where the workers have failed."""
        self._over.wait(_LONGEST)

    def end(self, error: BaseException | None = None) -> None:
        """Let those go on who wait; the error is what they raise."""
        self._error = error
        self._over.set()


class Background:
    """The thread that makes sums; it is there from the first one on.

    Args:
        compute: Makes one.
    """

    def __init__(self, compute: Sum) -> None:
        self._compute = compute
        self._asked: SimpleQueue[tuple[PendingSum, NDArray[Any], NDArray[Any], str] | None]
        self._asked = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: PendingSum | None = None

    def begin(self, vector: NDArray[Any], out: NDArray[Any], label: str) -> PendingSum:
        """Ask for a sum.

        Raises:
            RuntimeError: The system refuses the thread.
        """
        if self._thread is None:
            thread = new_thread("mirrored-sums", self._run)
            start(thread)
            self._thread = thread
        self._last = pending = PendingSum()
        self._asked.put((pending, vector, out, label))
        return pending

    def drain(self) -> None:
        """Return when all that was begun is over; what another thread does is in this order too."""
        last = self._last
        if last is not None and threading.current_thread() is not self._thread:
            last.wait()
            self._last = None

    def close(self) -> None:
        """Let the thread end after what it was asked for."""
        self._asked.put(None)

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            pending, vector, out, label = asked
            error: BaseException | None = None
            try:
                self._compute(vector, out, label)
            except BaseException as raised:
                error = raised
            pending.end(error)
            del asked, pending, vector, out, error  # Until the next one comes nobody keeps arrays.
