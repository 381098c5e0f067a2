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
    reason="workers are started by MPI: install mirrored's extra `mpich`",
)


def launch(
    tasks: Sequence[tuple[str, Any]],
    devices: Sequence[int],
    folder: Path,
    *,
    hosts: str | None = None,
    any_status: bool = False,
) -> list[list[Any]]:
    """Return what functions of `worker_programs` return: for each one, by rank.

    They run one after another on the same workers, of which each takes most of a second to start.

    Args:
        tasks: The functions' names, each with what it is called with, which is pickled.
        devices: How many simulated GPUs each worker has.
        folder: Where the results may be.
        hosts: The names of hosts that MPICH is to pretend, with commas in between.
        any_status: Whether the launch may end with another status than 0.
    """
    (folder / "tasks").write_bytes(pickle.dumps((list(tasks), tuple(devices))))
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
    found = [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(len(devices))]
    return [list(each) for each in zip(*found, strict=True)]
