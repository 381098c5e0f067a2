"""Signals by which a system asks a program to end: noted, so that the program saves first."""

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

from mirrored._arguments import explained
from mirrored._files import goes_on, of_all
from mirrored._logging import logger

_WHAT = "a check for signals to end"  # As errors of workers call it.


@explained
class PreemptionHandler:
    """Notes signals to end the program, so that a custom loop can save at the end of a step.

    Within this context the signals do not end the program. The loop asks `requested` after each
    step; where it is True, it saves and calls `end`, which ends the program as the signal would
    have. A second signal ends it at once. Outside the main thread, where Python receives no
    signals, and for signals that the program ignores, nothing is noted. `fit` with the callback
    `BackupAndRestore` does all this itself.

    Args:
        signals: The signals; None: SIGTERM and SIGUSR1.

    Raises:
        ValueError: Something in `signals` is no signal that a program can handle.

    Example:
        >>> import signal
        >>> import mirrored as mr
        >>> with mr.train.PreemptionHandler() as preemption:
        ...     for step in range(1000):
        ...         if step == 3:
        ...             signal.raise_signal(signal.SIGTERM)
        ...         if preemption.requested:
        ...             break  # Or save, and call `preemption.end()`.
        >>> step
        3
    """

    def __init__(self, signals: Sequence[int] | None = None) -> None:
        if signals is None:
            signals = (signal.SIGTERM, signal.SIGUSR1)
        handled = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
        if not signals or any(number not in handled for number in signals):
            raise ValueError(
                "`signals` must be signals that a program can handle, such as signal.SIGTERM. "
                f"Received: {signals!r}."
            )
        self._signals = [signal.Signals(number) for number in signals]
        self._previous: dict[signal.Signals, Any] = {}
        self._received: int | None = None

    def __enter__(self) -> Self:
        """Begin to note signals."""
        self._received = None
        if threading.current_thread() is not threading.main_thread():
            logger.debug("Signals are not noted outside the main thread.")
            return self
        for number in self._signals:
            previous = signal.getsignal(number)
            if previous is None or previous == signal.SIG_IGN:
                continue
            self._previous[number] = previous
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers from before."""
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._note:  # Nobody set another one meanwhile.
                signal.signal(number, previous)
        self._previous = {}

    @property
    def received(self) -> bool:
        """Whether this process has received such a signal."""
        return self._received is not None

    @property
    def requested(self) -> bool:
        """Whether a process has received such a signal; all workers ask after the same step.

        Where workers go on without those that die, a worker that has received one when not all
        have ends here, and the others go on.
        """
        received = of_all(self.received, _WHAT)
        if goes_on() and not all(received):
            if self.received:
                self.end()
            return False
        return any(received)

    def end(self) -> None:
        """End the program as the signal would have; a handler from before is called instead.

        A worker that has received no signal ends by the first of the signals.
        """
        number = self._signals[0] if self._received is None else self._received
        self.__exit__()
        sys.stdout.flush()
        sys.stderr.flush()
        signal.raise_signal(number)
        self.__enter__()  # A handler from before has returned: the program goes on.

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received = number
            return
        self.end()
