"""Several workers of mirrored as one contender: MPI starts them, and the first answers the driver.

All are in the process group that the driver stops, wakes and ends, whoever of them works.
"""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

# The launcher of MPICH that only forks. `mpiexec` itself gives each worker a session of its own,
# which the driver's signals would not reach.
LAUNCHER = "mpiexec.gforker"
APART = {"MPIR_CVAR_NOLOCAL": "1"}  # To MPICH no two of them share a host.


def start(count: int, *, apart: bool) -> NoReturn:
    """Become the launcher, which starts this program again as each worker.

    Args:
        count: How many workers.
        apart: Whether each is on a host of its own, as far as MPI knows: sums go as messages then.
    """
    launcher = Path(sys.executable).with_name(LAUNCHER)
    if not launcher.exists():
        sys.exit(f"there is no {launcher}: python -m benchmarks.environments mirrored installs it")
    environment = dict(os.environ)
    if apart:
        # Each has its part of this machine's cores; by itself it would take those of its host.
        threads = max(1, len(os.sched_getaffinity(0)) // count)
        environment |= APART | {"OPENBLAS_NUM_THREADS": str(threads)}
    command = [str(launcher), "-n", str(count), sys.executable, *sys.argv]
    os.execve(launcher, command, environment)


def is_worker() -> bool:
    """Say whether the launcher started this process."""
    return "PMI_RANK" in os.environ


def connect() -> Any:
    """Return the workers, which wait for each other without a limit.

    While they are suspended, clocks go on.
    """
    from mirrored.workers import connect

    workers = connect()
    workers.deadline = float("inf")
    return workers


class Requests:
    """Lines from the first worker, as a file that the others read.

    Args:
        workers: All of them.
    """

    def __init__(self, workers: Any) -> None:
        self._workers = workers

    def send(self, line: str) -> None:
        """Hand a line to all other workers; an empty one is the last."""
        self._workers.gather(line, "a request")

    def __iter__(self) -> "Requests":
        """Return itself."""
        return self

    def __next__(self) -> str:
        """Wait for the next line."""
        line: str = self._workers.gather("", "a request")[0]
        if not line:
            raise StopIteration
        return line
