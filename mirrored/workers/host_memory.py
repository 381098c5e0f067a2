"""Shared memory of the workers of a host, for barriers and for sums, and MPI's files in it."""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import ResourceExhaustedError
from mirrored.workers.worker_calls import BYTES

_LEAST = 1 << 12
# Where a part has its two counters, each in a cache line of its own, two calls, and the vectors:
# two that the worker gives, and what it has added up.
_ARRIVED, _DONE, _CALLS, _VECTORS = 0, 128, 256, 256 + 2 * BYTES
_GIVEN, _PARTS = 2, 3
_VIEWS = 64  # How many sizes of vectors have views that are kept.


class HostMemory:
    """The memory of the workers of one host.

    Args:
        mpi: The module of MPI.
        local: The communicator of the workers of this host.
        capacity: The bytes of a vector that are added up at a time, a multiple of 16.

    Attributes:
        capacity: This number, which is smaller where there is little memory.

    Raises:
        ResourceExhaustedError: There is too little memory that can be shared.
    """

    def __init__(self, mpi: Any, local: Any, capacity: int) -> None:
        self.rank, self.count = local.Get_rank(), local.Get_size()
        self.capacity = _fitting(mpi, local, capacity)
        size = _VECTORS + _PARTS * self.capacity
        memory = _mapped_by_all(local, size)
        self._sync = _no_fence if os.uname().machine in _IN_ORDER else _fence(mpi)
        parts = [memory[rank * size : (rank + 1) * size] for rank in range(self.count)]
        self._arrived = [part[_ARRIVED : _ARRIVED + 8].cast("Q") for part in parts]
        self._done = [part[_DONE : _DONE + 8].cast("Q") for part in parts]
        self._calls = [[part[at : at + BYTES] for part in parts] for at in (_CALLS, _CALLS + BYTES)]
        self._vectors = [
            np.frombuffer(part[_VECTORS:], np.uint8).reshape(_PARTS, -1) for part in parts
        ]
        self._views: dict[Any, tuple[list[NDArray[Any]], list[NDArray[Any]]]] = {}

    def say(self, stage: int, call: bytes) -> None:
        """Write what this worker does in a stage, for the others of its host."""
        self._calls[stage % 2][self.rank][:] = call

    def said(self, stage: int) -> list[bytes]:
        """Return what each worker of the host does, once all have arrived."""
        return [bytes(part) for part in self._calls[stage % 2]]

    def vectors(
        self, stage: int, dtype: np.dtype[Any], size: int
    ) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Return a vector of each worker that it gives in a stage, and one for what it adds up."""
        key = (stage % _GIVEN, dtype, size)
        if key not in self._views:
            if len(self._views) >= _VIEWS:
                self._views.clear()
            nbytes = size * dtype.itemsize
            terms, added = (
                [vectors[part][:nbytes].view(dtype) for vectors in self._vectors]
                for part in (stage % _GIVEN, _GIVEN)
            )
            self._views[key] = terms, added
        return self._views[key]

    def arrive(self, stage: int) -> None:
        """Say that what this worker gives in a stage is there."""
        self._sync()  # All that was written before is seen before the counter is.
        self._arrived[self.rank][0] = stage

    def finish(self, stage: int) -> None:
        """Say that this worker has read what others gave in a stage, and added up its part."""
        self._sync()
        self._done[self.rank][0] = stage

    def have_arrived(self, stage: int) -> bool:
        """Return whether all have arrived in a stage; what they gave may be read then."""
        for counter in self._arrived:
            if counter[0] < stage:
                return False
        self._sync()
        return True

    def have_finished(self, stage: int) -> bool:
        """Return whether all have finished a stage; what it took of the memory is free again."""
        for counter in self._done:
            if counter[0] < stage:
                return False
        self._sync()
        return True

    def absent(self, stage: int) -> list[int]:
        """Return which workers of the host have not arrived in a stage."""
        return [rank for rank, counter in enumerate(self._arrived) if counter[0] < stage]

    def unfinished(self, stage: int) -> list[int]:
        """Return which workers of the host have not finished a stage."""
        return [rank for rank, counter in enumerate(self._done) if counter[0] < stage]

    def close(self) -> None:
        """Give the memory back."""
        for views in (self._arrived, self._done, self._calls, self._vectors, self._views):
            views.clear()


def _mapped_by_all(local: Any, size: int) -> memoryview:
    """Return memory of zeros that the workers of this host share, with a part for each of them.

    Its file has no name once all have opened it, so that nothing is left where they are killed.

    Args:
        local: The communicator of these workers.
        size: The bytes of a part.

    Raises:
        ResourceExhaustedError: On all workers: one cannot get the memory.
    """
    import fcntl

    rank, count, folder = local.Get_rank(), local.Get_size(), FOLDER
    if not os.path.isdir(folder):
        folder = tempfile.gettempdir()
    path, file = "", -1
    reason: list[str] = []
    try:
        if rank == 0:
            with _reasoned() as reason:
                file, path = tempfile.mkstemp(prefix=_OWN, dir=folder)
                fcntl.flock(file, fcntl.LOCK_SH)  # See `remove_left_behind`.
                os.fchmod(file, stat.S_IRWXU)
        path = local.bcast(path)
        if path:
            with _reasoned() as reason:
                if rank:
                    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                os.posix_fallocate(file, rank * size, size)  # Writing where no room is kills.
        reasons = [text for texts in local.allgather(reason) for text in texts]
        if reasons:
            raise ResourceExhaustedError(
                f"The {count} workers of a host share memory in a file of {folder}, and one of "
                f"them cannot open it or enlarge it by {size} bytes. Received: {reasons[0]}"
            )
        return memoryview(mmap.mmap(file, count * size))
    finally:
        if file >= 0:
            os.close(file)
            if rank == 0:
                os.unlink(path)


@contextmanager
def _reasoned() -> Iterator[list[str]]:
    """Within this context an error of the system is noted in the list that it returns."""
    reasons: list[str] = []
    try:
        yield reasons
    except OSError as error:
        reasons.append(str(error))


# Processors on which all see the stores of one in their order.
_IN_ORDER = ("x86_64", "AMD64", "i686")


def _no_fence() -> None:
    """Do nothing."""


def _fence(mpi: Any) -> Callable[[], None]:
    """Return what orders this worker's loads and stores: MPI has it for windows of memory."""
    window = mpi.Win.Create(bytearray(8), comm=mpi.COMM_SELF)
    window.Lock_all(mpi.MODE_NOCHECK)
    fence: Callable[[], None] = window.Sync
    return fence


def _fitting(mpi: Any, local: Any, capacity: int) -> int:
    """Return how much there is room for: writing more than there is would end the process."""
    free = free_bytes()
    if free is None:
        free = capacity * 2 * _PARTS * local.Get_size()
    # Half of what is free, for all vectors of all workers.
    mine = min(capacity, free // (2 * _PARTS * local.Get_size())) // 64 * 64
    least = int(local.allreduce(mine, op=mpi.MIN))
    if least < _LEAST:
        raise ResourceExhaustedError(too_little(free, local.Get_size(), 2 * _PARTS * _LEAST))
    return least


FOLDER = "/dev/shm"
# How files of MPICH, of Open MPI and of this library begin.
_OWN = "mirrored_shm_"
_NAMES = ("mpich_shm_", "vader_segment.", "sm_segment.", _OWN)
_MARK = stat.S_IXUSR
# What MPICH takes of it for a worker, and which variable of its launcher says how many a host has.
_PER_WORKER, _LOCAL_COUNT = 1_060_000, "MPI_LOCALNRANKS"

_held: list[int] = []  # Open files, for as long as this process runs.


def free_bytes() -> int | None:
    """Return how many bytes are free where memory is shared; None: it is shared elsewhere."""
    try:
        status = os.statvfs(FOLDER)
    except (AttributeError, OSError):  # Windows has no such function.
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
        f"{free} bytes, for {workers} workers that need {bytes_per_worker} each. Increase it (in "
        "containers with `--shm-size`), or remove files there that no running program uses, such "
        f"as `{_NAMES[0]}*` of a job that was killed."
    )


def hold_files() -> None:
    """Lock and mark the files through which MPI shares memory with this process."""
    for path in _mapped():
        import fcntl  # Only systems that have that folder have it.

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
