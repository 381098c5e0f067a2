"""Whether another process of this host makes progress, by its processor time."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple


class Process(NamedTuple):
    """A process, which its number alone does not name: numbers are given again.

    Attributes:
        number: Its number.
        started: When it started, in the system's ticks.
        namespace: The processes among which it has that number.
    """

    number: int
    started: int
    namespace: str


def this_process() -> Process | None:
    """Return this process; None: the system does not say.

    Example:
        >>> this = this_process()
        >>> this is None or this.number == os.getpid()
        True
    """
    times = _times(os.getpid())
    return None if times is None else Process(os.getpid(), times[0], _namespace())


def processor_ticks(process: Process | None) -> int | None:
    """Return how long a process has computed, in the system's ticks; None: it cannot be seen.

    Args:
        process: What `this_process` returned there.
    """
    if process is None or process.namespace != _namespace():
        return None
    times = _times(process.number)
    return times[1] if times is not None and times[0] == process.started else None


def _times(number: int) -> tuple[int, int] | None:
    """Return when a process started and how long it has computed."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{number}/stat", "rb") as file:
            # Behind the name, which may hold anything: the state is the third value.
            values = file.read().rpartition(b")")[2].split()
        return int(values[19]), int(values[11]) + int(values[12])
    return None


def _namespace() -> str:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""
