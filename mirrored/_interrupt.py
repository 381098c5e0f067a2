"""Ctrl-C while variables are written: it waits for the end of the step that is running.

A step changes all weights on all replicas, so it must happen wholly or not at all. Where devices
wait for each other it may never end: who waits for them asks here whether to go on.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from mirrored._tracebacks import GENERATED, LIBRARY, is_pythons

# What `signal` is made of, where it is to be had: the module itself turns numbers into enums, which
# takes as long as a short step does.
_plain: Any = getattr(signal, "_signal", signal)
_handler_of, _set_handler = _plain.getsignal, _plain.signal
_SIGINT = int(signal.SIGINT)


_CALLED = ("cupy", "mpi4py", "numpy", "scipy", "tqdm")  # What the library itself calls.

# Seconds that a step has to end after an interrupt; after another one it has none.
PATIENCE = 5.0

# The guards that hold an interrupt back, in the order in which it came to them.
_holding: "list[InterruptGuard]" = []


def is_overdue() -> bool:
    """Return whether this thread's step holds an interrupt back for too long, and can be undone."""
    if not _holding or threading.current_thread() is not threading.main_thread():
        return False
    first = _holding[0]
    return all(guard.may_break for guard in _holding) and time.monotonic() >= first.act_from


def deliver() -> None:
    """Handle the interrupt that is held back; an exception of the handler is raised here."""
    while _holding:  # A guard hands it on to the one around it.
        _holding[-1].deliver()


def _is_users(frame: FrameType | None) -> bool:
    """Return whether a frame is of a user's function, or of what it calls of Python's own."""
    while frame is not None and is_pythons(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return False
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    file = frame.f_code.co_filename
    return package not in _CALLED and not file.startswith((LIBRARY, GENERATED))


class _Wakeup:
    """Reads Python's record of signals while their handlers wait for the main thread.

    Attributes:
        inside: What the main thread is inside of now that no handler can end; None: nothing.
    """

    def __init__(self) -> None:
        self.inside: object | None = None
        self._pipe: tuple[int, ...] = ()  # To read from, and to be written to.
        self._tried = False
        self._came: tuple[object, float] | None = None  # Inside of what, and to be acted on when.

    def listen(self) -> None:
        """Begin, in the main thread, unless somebody else listens already."""
        if self._tried or threading.current_thread() is not threading.main_thread():
            return
        self._tried = True
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if before != -1:  # An event loop's, which lets no main thread be stuck.
            signal.set_wakeup_fd(before)
            os.close(reading)
            os.close(writing)
            return
        self._pipe = reading, writing
        os.register_at_fork(after_in_child=self._end)

    def _end(self) -> None:
        """Leave the pipe to the process that it is of."""
        if self._pipe:
            signal.set_wakeup_fd(-1)
            for end in self._pipe:
                os.close(end)
        self._tried, self._pipe, self._came, self.inside = False, (), None, None

    def is_overdue(self) -> bool:
        """Return whether an interrupt has waited too long in the same library call."""
        came = self._came
        if self._read():
            again = came is not None and came[0] is self.inside
            patience = 0.0 if again else PATIENCE
            came = None if self.inside is None else (self.inside, time.monotonic() + patience)
        elif came is not None and came[0] is not self.inside:
            came = None  # The handler has run.
        self._came = came
        return came is not None and time.monotonic() >= came[1]

    def forget(self) -> None:
        """Forget earlier interrupts."""
        self._read()
        self._came = None

    def _read(self) -> bool:
        """Return whether an interrupt came since the last time."""
        try:
            return bool(self._pipe) and _SIGINT in os.read(self._pipe[0], 1 << 12)
        except BlockingIOError:
            return False


WAKEUP = _Wakeup()


@contextmanager
def inside() -> Iterator[None]:
    """Note that the main thread is in a library call, where it handles no interrupt.

    Who looks after what the library waits for asks `WAKEUP.is_overdue`, in another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    WAKEUP.inside = object()
    try:
        yield
    finally:
        WAKEUP.inside = None


class InterruptGuard:
    """Holds interrupts back while a step runs; between steps they act at once.

    It takes effect in the main thread, the only one that Python gives signals to, and leaves
    signals alone that the application ignores.

    Args:
        whole: Whether all that runs within the guard is one step.
        may_break: Whether a step can be undone while devices sum up what it is to write.

    Attributes:
        may_break: Whether it can.
        act_from: Since when an interrupt that is held back has waited for too long.
    """

    __slots__ = ("_in_step", "_installed", "_pending", "_previous", "act_from", "may_break")

    def __init__(self, *, whole: bool = False, may_break: bool = False) -> None:
        self.may_break = may_break
        self.act_from = math.inf
        self._in_step = whole
        self._pending: tuple[int, FrameType | None] | None = None
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Self:
        """Begin to receive interrupts."""
        previous = _handler_of(_SIGINT)
        if callable(previous):
            self._previous = previous
            try:
                _set_handler(_SIGINT, self._receive)
            except ValueError:  # This is not the main thread.
                return self
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handler of interrupts from before."""
        if self._installed:
            if _handler_of(_SIGINT) == self._receive:  # Nobody set another one meanwhile.
                _set_handler(_SIGINT, self._previous)
            self._installed = self._in_step = False
            if self._pending is not None:
                self.deliver()

    @property
    def pending(self) -> bool:
        """Whether an interrupt waits for the end of the step."""
        return self._pending is not None

    def step(self) -> "_Step":
        """Hold interrupts back until the end of this block."""
        return _Step(self)

    def deliver(self) -> None:
        """Handle an interrupt that is held back, if there is one."""
        pending, self._pending = self._pending, None
        if pending is not None:
            _holding.remove(self)
            self._previous(*pending)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._in_step:
            self._previous(number, frame)
            return
        if self._pending is None:
            _holding.append(self)
            self.act_from = time.monotonic() + PATIENCE
        else:
            self.act_from = -math.inf
        self._pending = (number, frame)
        # Functions of users may never return; an exception there ends a step as their own do.
        if self.act_from == -math.inf and is_overdue() and _is_users(frame):
            deliver()


class _Step:
    """A block to whose end a guard holds interrupts back; it may be as short as one step."""

    __slots__ = ("_guard",)

    def __init__(self, guard: InterruptGuard) -> None:
        self._guard = guard

    def __enter__(self) -> None:
        self._guard._in_step = True

    def __exit__(self, *_: object) -> None:
        self._guard._in_step = False
        self._guard.deliver()
