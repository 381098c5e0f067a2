"""Runs programs as several workers, which `mpiexec` of MPICH starts, and gathers what they print.

Each start takes most of a second of a processor a worker, so that programs hold many cases.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

# The launcher would mix what the workers write at the same time.
_TO_FILES = 'exec "$@" >"out.$PMI_RANK" 2>"err.$PMI_RANK"'


@dataclass(frozen=True)
class Finished:
    """What has become of the workers.

    Attributes:
        status: That of `mpiexec`.
        out: What each worker printed, by rank.
        err: What each wrote to standard error, by rank.
        launcher: What `mpiexec` itself wrote.
        seconds: How long it took.
    """

    status: int
    out: tuple[str, ...]
    err: tuple[str, ...]
    launcher: str
    seconds: float


def mpiexec() -> str:
    """Return the path of MPICH's launcher; without it the test is skipped."""
    path = Path(sys.prefix, "bin", "mpiexec")
    try:
        metadata.version("mpi4py"), metadata.version("mpich")
    except metadata.PackageNotFoundError:
        pytest.skip("Several workers need mirrored's extra `mpich`.")
    return str(path)


def run_ranks(
    program: str | Path,
    folder: Path,
    count: int = 2,
    *,
    hosts: Sequence[str] = (),
    module: str | None = "mirrored.run",
    meanwhile: Callable[[subprocess.Popen[str]], object] | None = None,
    seconds: float = 60.0,
) -> Finished:
    """Run a program as so many workers.

    Args:
        program: Its text, or where it is.
        folder: Where it runs, and is written if it is text.
        count: How many workers there are.
        hosts: The hosts that the launcher pretends there are.
        module: What runs it; None: `python` itself.
        meanwhile: Called with the launcher's process while they run.
        seconds: How long they may take; then the test fails.
    """
    path = program if isinstance(program, Path) else folder / "program.py"
    if isinstance(program, str):
        path.write_text(program)
    pretended = ["-launcher", "fork", "-hosts", ",".join(hosts)] if hosts else []
    through = [] if module is None else ["-m", module]
    ranks = [mpiexec(), *pretended, "-n", str(count)]
    command = [*ranks, "sh", "-c", _TO_FILES, "sh", sys.executable, *through, str(path)]
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if meanwhile is not None:
            meanwhile(process)
        out, err = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        pytest.fail(f"The workers hang. They wrote: {_written(folder, count)}\n{out}\n{err}")
    took = time.monotonic() - began
    return Finished(process.returncode, *_written(folder, count), f"{out}{err}", took)


def _written(folder: Path, count: int) -> list[tuple[str, ...]]:
    """Return what each worker wrote to both of its outputs."""
    files = ([folder / f"{kind}.{rank}" for rank in range(count)] for kind in ("out", "err"))
    return [tuple(each.read_text() if each.exists() else "" for each in kind) for kind in files]
