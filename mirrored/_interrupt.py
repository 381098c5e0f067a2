"""Ctrl-C while variables are written: it waits for the end of the step that is running.

A step changes all weights on all replicas, so it must happen wholly or not at all.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

# What `signal` is made of, where it is to be had: the module itself turns numbers into enums, which
# takes as long as a short step does.
_plain: Any = getattr(signal, "_signal", signal)
_handler_of, _set_handler = _plain.getsignal, _plain.signal
_SIGINT = int(signal.SIGINT)


class InterruptGuard:
    """Holds interrupts back while a step runs; between steps they act at once.

    It takes effect in the main thread, the only one that Python gives signals to, and leaves
    signals alone that the application ignores.

    Args:
        whole: Whether all that runs within the guard is one step.
    """

    __slots__ = ("_in_step", "_installed", "_pending", "_previous")

    def __init__(self, *, whole: bool = False) -> None:
        self._in_step = whole
        self._pending: tuple[int, FrameType | None] | None = None
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Self:
        """Begin to receive interrupts."""
        if threading.current_thread() is threading.main_thread():
            previous = _handler_of(_SIGINT)
            if callable(previous):
                self._previous = previous
                _set_handler(_SIGINT, self._receive)
                self._installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give interrupts back to whoever had them before."""
        if self._installed:
            _set_handler(_SIGINT, self._previous)
            self._installed = False
            self._deliver()

    @property
    def pending(self) -> bool:
        """Whether an interrupt waits for the end of the step."""
        return self._pending is not None

    @contextmanager
    def step(self) -> Iterator[None]:
        """Hold interrupts back until the end of this block."""
        self._in_step = True
        try:
            yield
        finally:
            self._in_step = False
            self._deliver()

    def _deliver(self) -> None:
        """Act on an interrupt that was held back."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._previous(*pending)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._in_step:
            self._pending = (number, frame)
        else:
            self._previous(number, frame)
