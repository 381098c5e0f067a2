"""Creates and starts the library's threads, and raises later what failed in one of them.

Where a system with a limit does not start a thread, an error is raised, and nothing waits for it.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterable


def new_thread(name: str, target: Callable[..., object], *args: object) -> threading.Thread:
    """Return a daemon thread that is not started yet.

    Who has to end it makes a note of it before `start`, which an interrupt may leave.

    Args:
        name: Its name, for those who look where a process hangs.
        target: What it calls.
        *args: What that is called with.
    """
    return threading.Thread(target=target, args=args, name=name, daemon=True)


def start(thread: threading.Thread) -> None:
    """Start a thread.

    Args:
        thread: What `new_thread` returned.

    Raises:
        RuntimeError: The system refuses it, or the interpreter ends.
    """
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise RuntimeError(
            f"A thread could not be started. Received: {error}, for {thread.name!r}, with "
            f"{threading.active_count()} threads running. Python starts no threads while it ends. "
            "Otherwise raise the system's limit, of processes (`ulimit -u`, a container's pids) "
            "or of memory (`ulimit -v`), or end other threads."
        ) from error


class Task:
    """A call that a thread makes while the program goes on; its error is raised later, once.

    Args:
        name: The thread's name.
        call: What the thread calls.
        undo: Called before the error is raised.
        agree: Waits for other processes, which have to agree on the error that it is called with,
            so that no step raises it; None: there are none.

    Attributes:
        agree: The same.
        thread: The thread, which is not started yet.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[], object],
        undo: Callable[[], object],
        agree: Callable[[BaseException | None], object] | None,
    ) -> None:
        self.agree = agree
        self._calls = [call]  # Whoever pops it is the only one.
        self._undo = undo
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._caller = threading.get_ident()
        self.thread = new_thread(name, self._run)

    def cancel(self) -> None:
        """Let the thread make no call, unless it has begun: `start` may have failed."""
        if self._take_call() is not None:
            self._over.set()

    def _take_call(self) -> Callable[[], object] | None:
        return self._calls.pop() if self._calls else None

    def _run(self) -> None:
        call = self._take_call()
        try:
            if call is not None:
                call()
        except BaseException as error:
            self._error = error
            failed.append(self)
        finally:
            self._over.set()

    def wait(self) -> None:
        """Return when the call is over."""
        self._over.wait()

    def end(self) -> BaseException | None:
        """Wait for the end; return the error, for the caller to raise, unless it was returned."""
        self.wait()
        try:
            failed.remove(self)
        except ValueError:  # There was none, or another thread has it.
            return None
        self._undo()
        error, self._error = self._error, None  # Its traceback leads here: a cycle.
        return error


# Tasks whose error was not raised yet. Every step looks whether there are some.
failed: list[Task] = []


def raise_failed() -> None:
    """Raise the error of a task that this thread has created, if there is one."""
    for task in [*failed]:
        if task._caller == threading.get_ident() and task.agree is None:
            error = task.end()
            if error is not None:
                raise error


def interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in another thread, at once or when it is back from code in C.

    Args:
        thread: The thread.
    """
    if thread.ident is not None and thread.is_alive():
        error = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), error)


def join_all(threads: Iterable[threading.Thread], seconds: float) -> list[threading.Thread]:
    """Wait N seconds for all threads together, and return those that go on.

    Args:
        threads: The threads, which may not have been started.
        seconds: How many seconds.
    """
    until = time.monotonic() + seconds
    alive = [thread for thread in threads if thread.is_alive()]
    for thread in alive:
        thread.join(max(0.0, until - time.monotonic()))
    return [thread for thread in alive if thread.is_alive()]
