"""MPI's files in shared memory, and files that ended jobs left behind.

A worker locks the files that it uses, which ends with its process, and marks them by a bit of their
mode. So a file that is marked and not locked is a dead job's, also where processes of other
containers cannot be seen. Files of other programs have no mark and are never touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from mirrored.errors import ResourceExhaustedError

FOLDER = "/dev/shm"
# How files of MPICH and Open MPI begin.
_NAMES = ("mpich_shm_", "vader_segment.", "sm_segment.")
_MARK = stat.S_IXUSR
# What MPICH takes of it for a worker, and which variable of its launcher says how many a host has.
_PER_WORKER, _LOCAL_COUNT = 1_060_000, "MPI_LOCALNRANKS"

_held: list[int] = []  # Open files, for as long as this process runs.


def free_bytes() -> int | None:
    """Return how many bytes are free where memory is shared; None: it is shared elsewhere."""
    try:
        status = os.statvfs(FOLDER)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def check_room(environment: Mapping[str, str] = os.environ) -> None:
    """Raise where MPI would find too little memory, and end the process without a word.

    Args:
        environment: The variables by which the launcher says how many workers this host has.

    Raises:
        ResourceExhaustedError: Less is free than the workers of this host need.
    """
    text, free = environment.get(_LOCAL_COUNT, ""), free_bytes()
    count = int(text) if text.isdecimal() else 0
    if free is not None and count > 1 and free < count * _PER_WORKER:
        raise ResourceExhaustedError(too_little(free, count, _PER_WORKER))


def too_little(free: int, workers: int, bytes_per_worker: int) -> str:
    """Return the text of the error that memory to share is short.

    Args:
        free: The bytes that are free.
        workers: How many workers share it.
        bytes_per_worker: The bytes that one of them needs.
    """
    return (
        f"The workers of a host share memory in {FOLDER}, where too little is free. Received: "
        f"{free} bytes, for {workers} workers that need {bytes_per_worker} each. Make it larger "
        f"(in containers by `--shm-size`), or remove files there that no running program uses, "
        f"such as `{_NAMES[0]}*` of a job that was killed."
    )


def hold_files() -> None:
    """Lock and mark the files through which MPI shares memory with this process."""
    import fcntl  # Only systems that have that folder have it.

    for path in _mapped():
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            _held.append(file)
            fcntl.flock(file, fcntl.LOCK_SH)
            os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) | _MARK)


def remove_left_behind() -> None:
    """Remove the files of jobs whose processes have all ended."""
    with suppress(OSError):
        for name in os.listdir(FOLDER):
            if name.startswith(_NAMES):
                with suppress(OSError), _locked_alone(os.path.join(FOLDER, name)) as path:
                    os.unlink(path)


@contextmanager
def _locked_alone(path: str) -> Iterator[str]:
    """Within this context nobody has locked a file of ours.

    Raises:
        OSError: A process that is alive holds it, or it is not ours.
    """
    import fcntl

    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(file)
        marked = stat.S_ISREG(status.st_mode) and status.st_mode & _MARK
        if not marked or status.st_uid != os.getuid():
            raise PermissionError(path)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(file)


def _mapped() -> set[str]:
    """Return the paths of the files in that folder that this process has in its memory."""
    paths: set[str] = set()
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            path = line.rstrip("\n").partition(FOLDER + os.sep)[2]
            if path.startswith(_NAMES) and not path.endswith(" (deleted)"):
                paths.add(os.path.join(FOLDER, path))
    return paths
