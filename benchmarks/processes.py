"""A contender's process: started, asked, stopped between its turns, and ended in time.

While it waits it is suspended with all it started, so that it takes nothing from the one measured.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Each changes how fast a contender is, or what it imports: all run with what they choose.
UNSET = (
    "OPENBLAS_",
    "GOTO_",
    "NVPL_",
    "BLIS_",
    "MKL_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "VECLIB_",
    "CUDA_",
    "XLA_",
    "JAX_",
    "TF_",
    "KERAS_",
    "TORCH_",
    "MIRRORED_",
    "PYTHON",
)


class ContenderError(Exception):
    """A contender said that it failed, ended, or did not answer in time."""


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that change a contender's speed or devices."""
    kept = {name: value for name, value in environment.items() if not name.startswith(UNSET)}
    return kept | {"TF_CPP_MIN_LOG_LEVEL": "2"}


class Process:
    """A contender that answers requests, one at a time.

    Args:
        command: What is run.
        limit: The seconds that it may take for an answer.

    Attributes:
        started: When it was started, on the clock of `time.perf_counter`.
        answered: When it answered last.

    Raises:
        ContenderError: It did not come up.
    """

    def __init__(self, command: Sequence[str | Path], limit: float) -> None:
        """Start it, wait until it has imported what it needs, and suspend it."""
        self.limit = limit
        self.started = time.perf_counter()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - It lives as long as the process.
        self._received = b""
        # A group of its own, but not a session: should the driver be killed, the system ends
        # suspended groups that nobody is left to wake.
        self._popen = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_environment(os.environ),
            process_group=0,
        )
        try:
            self._answer()
        except BaseException:
            self.kill()
            raise
        self._suspend()

    @property
    def pid(self) -> int:
        """The number of the process and of its group."""
        return self._popen.pid

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Wake it, hand it a request, and return its answer.

        Raises:
            ContenderError: It failed, ended, or did not answer in time; then it is killed.
        """
        if self._popen.stdin is None or self._popen.stdin.closed:
            raise ContenderError("it has ended already")
        self._signal(signal.SIGCONT)
        try:
            line = json.dumps({"do": do, **arguments}).encode() + b"\n"
            with contextlib.suppress(BrokenPipeError):  # How it ended is found out below.
                self._popen.stdin.write(line)
                self._popen.stdin.flush()
            answer = self._answer()
        finally:
            self._suspend()
        if "error" in answer:
            raise ContenderError(answer["error"])
        return answer

    def peak_memory(self) -> int | None:
        """Return the bytes of all its processes at their peaks, or None where it cannot be told."""
        peaks = [_peak_of(process) for process in _members(self.pid)]
        return sum(peaks) if peaks else None

    def kill(self) -> None:
        """End it and all that it started."""
        self._signal(signal.SIGKILL)
        self._popen.wait()
        for stream in (self._popen.stdin, self._popen.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _suspend(self) -> None:
        self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.returncode is not None:  # Its number may be another's by now.
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _answer(self) -> dict[str, Any]:
        deadline = time.perf_counter() + self.limit
        while True:
            line = self._line(deadline)
            if line.startswith(b"{"):  # Else a library greets while it is imported.
                self.answered = time.perf_counter()
                answer: dict[str, Any] = json.loads(line)
                return answer

    def _line(self, deadline: float) -> bytes:
        stdout = self._popen.stdout
        if stdout is None:
            raise ContenderError("it has no stdout")
        while b"\n" not in self._received:
            left = deadline - time.perf_counter()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                self.kill()
                raise ContenderError(f"timed out after {self.limit:g} s")
            part = os.read(stdout.fileno(), 65536)
            if not part:
                raise ContenderError(self._how_it_ended())
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _how_it_ended(self) -> str:
        self._signal(signal.SIGKILL)
        status = self._popen.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = lines[-1].strip()[:300] if lines else "it said nothing"
        return f"ended with status {status}: {last}"


def _members(group: int) -> list[Path]:
    """Return the folders in /proc of a group's processes; none where there is no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # After the name, which may hold spaces: state, parent, group.
            if int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                found.append(folder)
    return found


def _peak_of(process: Path) -> int:
    with contextlib.suppress(OSError):
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
