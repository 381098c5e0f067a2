"""Connects this process with the other processes of its launcher, once.

Without a launcher there are no others, which is no error: the same program runs on one worker. The
workers of a host share its cores: else each would use all of them, and wait in every product.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mirrored._logging import logger
from mirrored.backends import product_settings
from mirrored.workers.host_memory import check_room, hold_files, remove_left_behind
from mirrored.workers.launch import INSTALL, abort_at_exit, is_mpi_loaded, launch, load_mpi
from mirrored.workers.worker import DEADLINE, Workers

_lock = threading.Lock()
_connected: Workers | None = None


def connect(deadline: float | None = None) -> Workers:
    """Return the workers of this job: all processes that `mpiexec` started beside this one.

    The first call connects them, and waits until all have come; later ones return the same. Where
    no launcher started this process, or it started one, there is one worker, which needs no MPI.

    Args:
        deadline: The seconds that calls wait for others from now on, this one included; None: as
            many as before, at first 10 minutes.

    Raises:
        ImportError: There are others, and the package mpi4py is not installed.
        FailedPreconditionError: MPI serves one thread only, or is not the launcher's.
        ResourceExhaustedError: There is too little memory for the workers of a host to share.
        WorkerTimeoutError: Others did not come in time.

    Example:
        >>> workers = connect()
        >>> workers.rank, workers.count, workers.is_chief
        (0, 1, True)
    """
    global _connected
    with _lock:
        if _connected is None:
            _connected = _connect(DEADLINE if deadline is None else deadline)
        if deadline is not None:
            _connected.deadline = deadline
        return _connected


def _connect(deadline: float) -> Workers:
    launched = launch()
    if launched is None and not is_mpi_loaded():
        logger.debug("One worker: no launcher of MPI, such as `mpiexec`, started this program.")
        return Workers()
    if not is_mpi_loaded():
        remove_left_behind()
        check_room()
    try:
        mpi = load_mpi(launched, deadline)
    except ImportError:
        if launched is None or launched.processes != 1:
            raise
        logger.debug(
            "One worker: mpi4py is not installed. To connect several workers, %s.", INSTALL
        )
        return Workers()
    if mpi.COMM_WORLD.Get_size() == 1 and mpi.Comm.Get_parent() == mpi.COMM_NULL:
        alone = "MPI is loaded, and has no other process."
        started = alone if launched is None else f"{launched.launcher} started one process."
        logger.debug("One worker: %s", started)
        return Workers()
    hold_files()
    return _connect_by(mpi, deadline)


def _connect_by(mpi: object, deadline: float) -> Workers:
    # Where there is one worker nothing of this is loaded.
    from mirrored.workers.launch import library
    from mirrored.workers.layout import lay_out
    from mirrored.workers.mpi_workers import MPIWorkers

    try:
        layout = lay_out(mpi, deadline)
        threads = share_cores(layout.local)
        workers = MPIWorkers(mpi, layout)
    except BaseException:
        abort_at_exit(1)  # Else MPI would wait at the end for those who did not come.
        raise
    if workers.is_chief:
        counts = Counter(layout.hosts)
        logger.debug(
            "%d workers on %d host%s (%s), connected by %s%s.",
            *(workers.count, len(counts), "" if len(counts) == 1 else "s"),
            ", ".join(f"{host}: {count}" for host, count in counts.items()),
            library(mpi),
            "" if threads is None else f"; matrix products use {threads} thread(s) each",
        )
    return workers


# By these users say how many threads the BLAS uses.
_ASKED = (
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_NUM_THREADS",
)


def share_cores(local: Any) -> int | None:
    """Let products of this worker use its part of the cores; all workers of the host call it.

    Args:
        local: The communicator of the workers of this host.

    Returns:
        The number of threads; None: the user has set it.
    """
    mine = _cores()
    everybody = local.allgather(mine)
    if any(os.environ.get(variable, "").strip() for variable in _ASKED):
        return None
    threads = part_of(mine, everybody)
    product_settings.limit(threads)
    return threads


def part_of(mine: Sequence[int], everybody: Sequence[Sequence[int]]) -> int:
    """Return how many threads a worker uses, by the cores that each of its host may use.

    A launcher that gives each worker cores of its own has shared them out already.

    Example:
        >>> part_of([0, 1, 2, 3], [[0, 1, 2, 3]] * 2), part_of([0, 1], [[0, 1], [2, 3]])
        (2, 2)
    """
    sharing = sum(1 for other in everybody if not set(mine).isdisjoint(other))
    return max(1, len(mine) // max(1, sharing))


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
