"""Starts processes of the same program in place of workers that died, and lets them join.

A new process runs the program from its beginning. Until it comes to where the others wait for it,
it answers calls of all workers by itself; then MPI merges it with them.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

from mirrored._logging import logger

# Seconds in which a new process begins to use MPI. Open MPI's own wait has no limit.
_START = 60.0
_OFTEN = 0.002


def start(mpi: Any, comm: Any, count: int, deadline: float) -> Any:
    """Return what connects workers with new processes; None: they did not start.

    Args:
        mpi: The module of MPI.
        comm: The communicator of the workers; all of them call it.
        count: The number of processes.
        deadline: The seconds that they have.
    """
    started: list[Any] = []

    def spawn() -> None:
        with suppress(mpi.Exception):
            arguments = sys.orig_argv[1:]
            between = comm.Dup().Spawn(sys.executable, args=arguments, maxprocs=count, root=0)
            between.Set_errhandler(mpi.ERRORS_RETURN)
            started.append(between)

    thread = threading.Thread(target=spawn, daemon=True)
    thread.start()
    thread.join(min(_START, deadline))
    return started[0] if started else None


def are_ready(mpi: Any, between: Any, welcomes: list[Any], deadline: float) -> bool:
    """Return whether all new processes come to where they join; the first worker calls it.

    Args:
        mpi: The module of MPI.
        between: What `start` returned.
        welcomes: What each of them gets.
        deadline: The seconds that they have.
    """
    until, waiting = time.monotonic() + deadline, 2 * [*range(len(welcomes))]
    sent = []
    with suppress(mpi.Exception):  # One has died.
        while waiting and time.monotonic() < until:
            for n in {*waiting}:
                if between.Iprobe(n):
                    between.recv(source=n)
                    waiting.remove(n)
                    if n in waiting:  # It has begun; the second time it joins.
                        sent.append(between.isend(welcomes[n], n))
            for message in sent:
                message.Test()
            time.sleep(_OFTEN)
    return not waiting


def leave() -> NoReturn:
    """End this new process, without which the others go on."""
    logger.warning("A process that was started in place of a worker ends: it came too late.")
    raise SystemExit(0)


def ask(mpi: Any, parent: Any, deadline: float) -> Any:
    """Return an answer of the first worker to this new process, which ends if none comes.

    The first one has the number that it will have, the hosts and the state; the second one whether
    it joins, and the numbers of calls and of changes that the others have seen.

    Args:
        mpi: The module of MPI.
        parent: What connects this process with the workers.
        deadline: The seconds to wait.
    """
    until = time.monotonic() + deadline
    with suppress(mpi.Exception):  # The first worker has died or ended.
        parent.send(None, 0)
        while time.monotonic() < until:
            if parent.Iprobe(0):
                return parent.recv(source=0)
            time.sleep(_OFTEN)
    leave()
