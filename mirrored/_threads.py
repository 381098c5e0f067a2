"""Creates and starts the library's threads.

Where a system with a limit does not start a thread, an error is raised, and nothing waits for it.
"""

import threading
from collections.abc import Callable


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
