"""Starts processes of the same program in place of workers that died, and lets them join.

A new process runs the program from its beginning. Until it comes to where the others wait for it,
it answers calls of all workers by itself; then MPI merges it with them. The first worker alone
starts it: Open MPI waits indefinitely for whoever dies in what connects processes (`PMIx_Connect`,
seen in 5.0.11), so all others meet it when it is there, in some milliseconds, and on a thread.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

from mirrored._logging import logger
from mirrored.workers.waiting import Process, processor_ticks, this_process

# Seconds in which a new process begins to use MPI. Open MPI's own wait has no limit.
_START = 60.0
_LEAVE = 5.0  # And in which the launcher knows it then.
_OFTEN = 0.002
_STARTER = "MIRRORED_STARTER"  # The variable that tells a new process who started it.


def start(mpi: Any, count: int, deadline: float) -> Any:
    """Return what connects this worker with new processes; None: they did not start.

    Args:
        mpi: The module of MPI.
        count: The number of processes.
        deadline: The seconds that they have.
    """
    known = mpi.Info.Create()
    known["PMIX_ENVAR"] = f"{_STARTER}={json.dumps(this_process())}"
    program = {"args": sys.orig_argv[1:], "maxprocs": count, "info": known}
    spawn = partial(mpi.COMM_SELF.Spawn, sys.executable, **program)
    return connected(mpi, spawn, lambda: True, min(_START, deadline))


def connected(
    mpi: Any, operation: Callable[[], Any], goes_on: Callable[[], bool], deadline: float
) -> Any:
    """Return what an operation of MPI connects; None: it failed, or is given up.

    Args:
        mpi: The module of MPI.
        operation: What may wait indefinitely for a process that has died.
        goes_on: Whether it is waited for.
        deadline: The seconds that it has.
    """
    ends: list[Any] = []

    def connect() -> None:
        try:
            between = operation()
            between.Set_errhandler(mpi.ERRORS_RETURN)
            ends.append(between)
        except mpi.Exception:
            ends.append(None)

    threading.Thread(target=connect, daemon=True).start()
    until = time.monotonic() + deadline
    with suppress(mpi.Exception):  # Of looking at the others.
        while not ends and time.monotonic() < until and goes_on():
            time.sleep(_OFTEN)
    return ends[0] if ends else None


def is_new() -> bool:
    """Return whether this process was started in place of a worker."""
    return _STARTER in os.environ


def begin(mpi: Any) -> None:
    """Initialise MPI in a new process; end it where the worker that started it has died.

    Args:
        mpi: The module of MPI.
    """
    named = json.loads(os.environ[_STARTER])
    starter, this = None if named is None else Process(*named), this_process()
    began = threading.Event()

    def watch() -> None:
        while not began.wait(_OFTEN) and processor_ticks(starter) is not None:
            pass
        if not began.is_set():
            leave_launcher()
            os._exit(0)

    if starter is not None and this is not None and starter.namespace == this.namespace:
        threading.Thread(target=watch, daemon=True).start()
    os.putenv("OMPI_MCA_mpi_initial_errhandler", "mpi_errors_return")
    # mpi4py lets no other thread of Python work meanwhile.
    error = ctypes.CDLL(_path_of("libmpi.so")).MPI_Init_thread(
        *(None, None, mpi.THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))
    )
    began.set()
    if error:  # The worker that started it has died.
        leave_launcher()
        os._exit(0)
    for comm in (mpi.COMM_SELF, mpi.COMM_WORLD):
        comm.Set_errhandler(mpi.ERRORS_RETURN)


def leave_launcher() -> None:
    """Tell Open MPI's launcher that this new process ends as it should.

    `MPI_Finalize` does so, and waits indefinitely for workers that have died. Where another thread
    begins with `MPI_Init`, the launcher does not know the process yet.
    """
    finalize = ctypes.CDLL(_path_of("libpmix.so")).PMIx_Finalize
    until = time.monotonic() + _LEAVE
    while finalize(None, 0) and time.monotonic() < until:
        time.sleep(_OFTEN)


def _path_of(library: str) -> str:
    """Return the path of a library that this process uses."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return next(line.split()[-1] for line in lines if library in line)


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


def leave(reason: str) -> NoReturn:
    """End this new process, without which the others go on.

    Args:
        reason: Why, for the log.
    """
    logger.warning("A process that was started in place of a worker ends: %s.", reason)
    raise SystemExit(0)


def ask(mpi: Any, parent: Any, deadline: float) -> Any:
    """Return an answer of the first worker to this new process, which ends if none comes.

    The first one has the number that it will have, the hosts and the state; the second one the port
    at which the others wait, or nothing; and the third one the numbers of calls and of changes that
    they have seen, or nothing.

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
    leave("it came too late")
