"""Programs on several workers: started by mpiexec, with what each of them returned."""

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_SUPPORT = Path(__file__).parent
_DEADLINE = 120.0  # Seconds; a launch takes a few.
_MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or _MPIEXEC is None,
    reason='workers are started by MPI: pip install "mirrored[mpich]"',
)


def launch(
    program: str,
    devices: Sequence[int],
    given: Any,
    folder: Path,
    *,
    hosts: str | None = None,
    any_status: bool = False,
) -> list[Any]:
    """Return what a function of `worker_programs` returns on each worker, by rank.

    Args:
        program: The function's name.
        devices: How many simulated GPUs each worker has.
        given: What it is called with; it is pickled.
        folder: Where the results may be.
        hosts: The names of hosts that MPICH is to pretend, with commas in between.
        any_status: Whether the launch may end with another status than 0.
    """
    task = folder / "task"
    task.write_bytes(pickle.dumps((program, tuple(devices), given)))
    here = str(_SUPPORT.parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([here, str(_SUPPORT)]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    pretended = [] if hosts is None else ["-launcher", "fork", "-hosts", hosts]
    command = [
        str(_MPIEXEC),
        *pretended,
        "-n",
        str(len(devices)),
        sys.executable,
        "-m",
        "mirrored.run",
    ]
    done = subprocess.run(
        [*command, str(_SUPPORT / "worker_programs.py"), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_DEADLINE,
        check=False,
    )
    assert any_status or done.returncode == 0, done.stdout + done.stderr
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(len(devices))]
