"""Runs a program in its own process with a deadline.

Whatever it does, the caller goes on: with the program's last words, and with no process left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess

# How much of what it writes is kept, in bytes: the end, where an error is.
_KEPT = 1 << 16
# How often its end is looked for, in seconds.
_INTERVAL = 0.05
# How long a process that was killed may take to go, in seconds. One that waits inside a driver can
# never end.
_GONE_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        status: Its exit status, or minus the number of the signal that ended it; None: it was not
            done by the deadline, and was killed.
        output: The end of what it wrote to standard output.
        errors: The end of what it wrote to standard error.
        seconds: How long it ran.
    """

    status: int | None
    output: str
    errors: str
    seconds: float


class Then(NamedTuple):
    """When a program's time begins again: once it has written something to standard output.

    Attributes:
        written: What it writes.
        timeout: The seconds that it may take from then on.
    """

    written: str
    timeout: float


def run_child(
    command: Sequence[str], text: str, timeout: float, then: Then | None = None
) -> Outcome:
    """Run a program, and all that it starts, for at most so long.

    It has a process group of its own, which is killed at the end: Ctrl-C reaches it as the end of
    this call. Its environment is that of this process, and its Python imports what this one does.

    Args:
        command: The program and its arguments.
        text: What it reads from standard input.
        timeout: The seconds that it may take.
        then: What it may take when it has come so far; None: there is one deadline for all of it.

    Raises:
        OSError: It could not be started.
    """
    import subprocess  # These are slow to import, and needed here only.
    import tempfile

    start = time.monotonic()
    with tempfile.TemporaryFile() as source:  # A pipe would block where nobody reads it.
        source.write(text.encode())
        source.seek(0)
        process = subprocess.Popen(
            command,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    try:
        ended, (output, errors) = _follow(process.pid, pipes, start + timeout, then)
    finally:
        _end(process)
    status = process.returncode if ended else None
    return Outcome(status, _text(output), _text(errors), time.monotonic() - start)


def _environment() -> dict[str, str]:
    """Return this process's environment, in which Python finds the modules that this one does."""
    paths = (path or os.getcwd() for path in sys.path)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _follow(
    pid: int, pipes: Sequence[IO[bytes]], deadline: float, then: Then | None
) -> tuple[bool, list[bytes]]:
    """Return whether a process ended by the deadline, and the end of what it wrote to each pipe."""
    import selectors

    kept = {pipe.fileno(): b"" for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            ended = _has_ended(pid)  # Asked first: what it wrote before its end is read below.
            ready = selector.select(0 if ended else max(0, min(left, _INTERVAL)))
            for key, _ in ready:
                written = os.read(key.fd, _KEPT)
                kept[key.fd] = (kept[key.fd] + written)[-_KEPT:]
                if not written:
                    selector.unregister(key.fileobj)
            if then is not None and then.written.encode() in kept[pipes[0].fileno()]:
                deadline, then = time.monotonic() + then.timeout, None
            if left <= 0 or (ended and not ready):
                return ended, list(kept.values())


def _has_ended(pid: int) -> bool:
    """Return whether a process has ended. It keeps its number, so nothing else can be killed."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # This process lets the system forget its children at once.
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a process and of all that it started, and forget it."""
    from subprocess import TimeoutExpired

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutExpired):
        process.wait(_GONE_WITHIN)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _text(written: bytes) -> str:
    return written.decode(errors="replace")
