"""TensorFlow 1's `tf.train.Coordinator`: threads of a program that stop together."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_POLL = 0.05  # Seconds between two looks at threads, so that Ctrl-C is heard.


class Coordinator:
    """Stops threads together, and raises in `join` the exception that stopped them.

    Args:
        clean_stop_exception_types: Errors that end threads without being handed on.

    Example:
        >>> import threading
        >>> import mirrored.compat.v1 as tf
        >>> coord = tf.train.Coordinator()
        >>> def work():
        ...     while not coord.should_stop():
        ...         coord.request_stop()
        >>> thread = threading.Thread(target=work)
        >>> thread.start()
        >>> coord.join([thread])
        >>> coord.should_stop()
        True
    """

    def __init__(
        self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None
    ) -> None:
        self._clean = clean_stop_exception_types or ()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._raised: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._joined = False

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined

    def should_stop(self) -> bool:
        """Return whether a stop has been requested."""
        return self._stop.is_set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested, and return whether it was."""
        return self._stop.wait(timeout)

    def clear_stop(self) -> None:
        """Clear the request to stop."""
        self._stop.clear()
        self._raised, self._joined = None, False

    def request_stop(self, ex: Any = None) -> None:
        """Request all threads to stop.

        Args:
            ex: The error for which, which `join` raises: the first one counts. What
                `sys.exc_info()` returns is one too.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if isinstance(error, self._clean):
                error = None
            if self._raised is None and not self._stop.is_set():
                self._raised = error
            self._stop.set()

    def raise_requested_exception(self) -> None:
        """Raise the exception that was passed to `request_stop`, if any."""
        if self._raised is not None:
            raise self._raised

    def register_thread(self, thread: threading.Thread) -> None:
        """Add a thread that `join` waits for."""
        self._threads.append(thread)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Return a context that turns an exception into a request to stop."""
        try:
            yield
        except BaseException as error:
            self.request_stop(error)

    def join(
        self,
        threads: Sequence[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for threads, and raise the exception that was passed to `request_stop`, if any.

        Args:
            threads: Threads, beside those that were registered.
            stop_grace_period_secs: How long they may take once they are to stop.
            ignore_live_threads: Whether those that go on are no error then.

        Raises:
            RuntimeError: Threads go on.
        """
        _began = time.monotonic()  # Reports of stalls read it.
        left = [*self._threads, *(threads or ())]
        while any(thread.is_alive() for thread in left) and not self.wait_for_stop(_POLL):
            pass
        until = time.monotonic() + stop_grace_period_secs
        while any(thread.is_alive() for thread in left) and time.monotonic() < until:
            time.sleep(_POLL / 10)
        self._joined = True
        self._threads.clear()
        going = [thread.name for thread in left if thread.is_alive()]
        self.raise_requested_exception()
        if going and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(going)}")

    def __enter__(self) -> "Coordinator":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.request_stop(error)
        self.join()
