"""A thread that looks after collectives where nobody else does.

A host that runs ahead of a collective that hangs is kept in the driver, or in NCCL, as soon as the
queues there are full, and waits for nothing that it could look after.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mirrored._threads import new_thread, start
from mirrored.backends.communication.calls import Call, Helpers
from mirrored.backends.communication.looks import Looks

# Seconds that `rest` waits at most, and how often it looks.
_REST, _OFTEN = 1.0, 0.01


class Watchdog:
    """A thread that is there while there is something to look after.

    It goes by real time, and asks no device itself: helpers look for it.

    Args:
        looks: Whose looks it waits for, whoever began them.
        helpers: Where looks are begun.
        busy: Whether there is anything to look after.
        look: Looks, and begins to end what is in trouble. It may not return.
        end_unseen: The same for what has had all its seconds, without asking a device.
        seconds: How often it looks.
        patience: The seconds that a look may take. It counts how often it is awake meanwhile, so
            that no look is late because the process was suspended.
    """

    def __init__(
        self,
        looks: Looks,
        helpers: Helpers,
        *,
        busy: Callable[[], bool],
        look: Callable[[], object],
        end_unseen: Callable[[], object],
        seconds: float,
        patience: float,
    ) -> None:
        self._looks = looks
        self._helpers = helpers
        self._busy = busy
        self._look = look
        self._end_unseen = end_unseen
        self._seconds = seconds
        self._turns = max(1, round(patience / seconds))
        self._lock = threading.Lock()  # Of whether the thread is there.
        self._thread: threading.Thread | None = None
        self._call: Call[object] | None = None
        self._woken = threading.Event()

    def start(self) -> None:
        """See to it that it runs; call this when there is something to look after.

        Raises:
            RuntimeError: The system refuses the thread, and what hangs would hang for ever.
        """
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
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
            looking = self._looks.under_way
            turns = turns + 1 if looking is not None and looking is seen else 0
            seen = looking
            if looking is None:
                self._call = self._helpers.call("mirrored-look", self._look)
                if not self._call.begun:  # What is late ends all the same.
                    self._end_unseen()
            elif turns >= self._turns:
                self._end_unseen()
