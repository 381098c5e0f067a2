"""A part of a run: a process with its own deadline, whose end is known whatever becomes of it.

A part that crashes or hangs costs its own results and no others'.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAST_LINES = 15


class Deadline:
    """The time that a run may take as a whole.

    Args:
        seconds: From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left, 0 at the least."""
        return max(0.0, self._end - time.monotonic())


@dataclass(frozen=True)
class Ended:
    """How a part's process ended.

    Attributes:
        status: Its exit status; below 0 the signal that ended it, None where it was out of time.
        seconds: How long it took.
        output: All that it printed.
    """

    status: int | None
    seconds: float
    output: str

    @property
    def last_lines(self) -> str:
        """The end of what it printed."""
        return "\n".join(self.output.splitlines()[-LAST_LINES:])

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.status is None:
            return f"not ended after {self.seconds:.0f} s, and killed"
        if self.status < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


def run(command: Sequence[str | Path], limit: float, environment: Mapping[str, str]) -> Ended:
    """Run a process from the root of the checkout, and end it with all it started in time.

    Args:
        command: What is run.
        limit: Seconds.
        environment: Variables beside this process' own.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            process_group=0,
        )
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(limit)
        finally:
            # What it started may outlive it, and would hold the card.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - started
        output.seek(0)
        return Ended(status, seconds, output.read().decode(errors="replace"))
