"""NumPy on the host's memory, for the CPU and for simulated GPUs.

Memory is counted, not managed: a limit holds exactly, and freeing needs no lock.
"""

from __future__ import annotations

import math
import mmap
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.backend import Backend, OutOfPoolMemory, OwnKernel, Pool, Storage

# NumPy copies an operand that broadcasts, or that is cast, through a buffer of this size.
# Its own 8192 would be memory that nobody counts, 64 KiB an operand, and no faster: rows as long as
# this are not copied at all, which makes adding a bias to 1000 columns 1.6 times as fast.
_BUFFER_ELEMENTS = 1024


# Large arrays begin where a cache line does, which makes a matrix product 1% faster. Finding the
# place takes longer than small arrays gain.
_ALIGNED_FROM = 1 << 16
_LINE = 64

_MEMINFO = "/proc/meminfo"
# The limit of a container and what is used of it, of the second and of the first version of
# cgroups, as a container sees its own: https://docs.kernel.org/admin-guide/cgroup-v2.html.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)

# What is kept between two calls of `fit` gives its pages back from this size on; large pages are
# asked for where NumPy does so for its own arrays.
_PAGES_FROM = 1 << 20
_HUGE_PAGES_FROM = 1 << 22
_CAN_GIVE_BACK = hasattr(mmap, "MADV_DONTNEED")  # Windows cannot.

# More of them are counted in the next call, so that they take little memory.
_MOST_CHANGES = 256


class CountingPool:
    """A hard limit on the bytes in use, optionally inside a larger pool.

    Args:
        limit: Limit in bytes, None for no limit.
        parent: A pool that everything here counts towards as well.
    """

    __slots__ = ("_changes", "_current", "_lock", "_peak", "limit", "parent")

    def __init__(self, limit: int | None = None, parent: CountingPool | None = None) -> None:
        self.limit = limit
        self.parent = parent
        self._current = 0
        self._peak = 0
        # Reentrant: a finalizer that the garbage collector runs in here may allocate.
        self._lock = threading.RLock()
        # Changes wait here, in their order, until somebody counts. Appending to a deque is atomic,
        # so a storage may die inside the garbage collector, on any thread, while a lock is held.
        self._changes: deque[int] = deque()

    @property
    def current(self) -> int:
        """Bytes in use now."""
        with self._lock:
            return self._settle()

    @property
    def peak(self) -> int:
        """The most bytes in use at once since the start or the last ``reset_peak``."""
        with self._lock:
            self._settle()
            return self._peak

    def reset_peak(self) -> None:
        """Start measuring the peak again from what is in use now."""
        with self._lock:
            self._peak = self._settle()

    def reserve(self, nbytes: int) -> None:
        """Count ``nbytes`` as used.

        Raises:
            OutOfPoolMemory: Past the limit, or past that of a pool around this one; nothing is
                counted then.
        """
        if self.limit is None and self.parent is None and len(self._changes) < _MOST_CHANGES:
            self._changes.append(nbytes)
            return
        with self._lock:
            self._settle()
            if self.limit is not None and self._current + nbytes > self.limit:
                raise OutOfPoolMemory(nbytes, self)
            if self.parent is not None:
                self.parent.reserve(nbytes)
            self._changes.append(nbytes)

    def release(self, nbytes: int) -> None:
        """Give ``nbytes`` back, here and in the pools around this one, without a lock."""
        self._changes.append(-nbytes)
        if self.parent is not None:
            self.parent.release(nbytes)

    def close(self) -> None:
        """Do nothing: host memory goes back with its arrays."""

    def _settle(self) -> int:
        """Count what changed since; the caller holds the lock."""
        changes = self._changes
        while changes:
            change = changes.popleft()  # No finalizer runs while it is added.
            self._current += change
            if self._current > self._peak:
                self._peak = self._current
        return self._current


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an uninitialised array whose memory begins at a multiple of a cache line."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def _settings_of_kernels() -> tuple[ContextVar[Any], Any]:
    """Return where NumPy keeps its settings, and those that kernels run with.

    `np.errstate` creates them in each call, which takes longer than a small kernel.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    context.run(np.setbufsize, _BUFFER_ELEMENTS)
    ((variable, settings),) = context.items()
    return variable, settings


_SETTINGS, _OF_KERNELS = _settings_of_kernels()


class HostPlace:
    """Memory of the host that keeps its place while its bytes are given back and taken again.

    Attributes:
        array: The place, as bytes; another one once more is needed than it has.
        forgets: Whether what was written there is gone once its bytes are given back.
    """

    def __init__(self) -> None:
        self.array: NDArray[Any] = np.empty(0, np.uint8)
        self._pages: mmap.mmap | None = None
        self.forgets = False

    @staticmethod
    def allocate(pool: Pool, wanted: Sequence[tuple[HostPlace, int]]) -> list[Storage]:
        """Return bytes from the beginning of places, all of them counted by the pool at once.

        Args:
            pool: The pool.
            wanted: The places, each with the number of its bytes.

        Raises:
            OutOfPoolMemory: The pool's limit, or the host's memory, does not allow it; none are
                counted then.
        """
        total = 0
        for _, nbytes in wanted:  # A list would be another call, for each program that runs.
            total += nbytes
        _counting(pool).reserve(total)
        storages: list[Storage] = []
        try:
            for place, nbytes in wanted:
                if nbytes > place.array.nbytes:
                    place._move(nbytes)
        except BaseException as error:
            pool.release(total)
            if isinstance(error, MemoryError | OSError) or total > sys.maxsize:
                raise OutOfPoolMemory(total, None) from None
            raise
        for place, nbytes in wanted:
            storages.append(Storage(place.array[:nbytes], pool, nbytes))
        return storages

    def let_go(self) -> None:
        """Let the system have what was written there; what is small stays for the next time."""
        if self._pages is not None:
            self._pages.madvise(mmap.MADV_DONTNEED)

    def _move(self, nbytes: int) -> None:
        self.let_go()  # Views of the old place may stay, though nobody looks there any more.
        self._pages = None
        self.forgets = _CAN_GIVE_BACK and nbytes >= _PAGES_FROM
        if not self.forgets:
            self.array = _aligned((nbytes,), np.dtype(np.uint8))
            return
        # Private: a forked child's is its own.
        self._pages = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if nbytes >= _HUGE_PAGES_FROM:
            with suppress(AttributeError, OSError):  # Linux alone has them, and not always.
                self._pages.madvise(mmap.MADV_HUGEPAGE)
        self.array = np.frombuffer(self._pages, np.uint8)


def _counting(pool: Pool) -> CountingPool:
    if not isinstance(pool, CountingPool):
        raise TypeError(f"A device's pool must be created by its backend. Received: {pool!r}")
    return pool


class HostBackend:
    """The backend of every device whose arrays are NumPy's."""

    xp: Any = np
    kernels: Mapping[str, OwnKernel] = MappingProxyType({})

    host_readable: bool = True
    streamed: bool = False
    memory: str = "host"

    def call(
        self, kernel: Callable[..., object], args: Sequence[Any], attrs: Mapping[str, Any]
    ) -> None:
        """Call a kernel; infinities and NaN are its results, never warnings."""
        token = _SETTINGS.set(_OF_KERNELS)
        try:
            kernel(*args, **attrs)
        finally:
            _SETTINGS.reset(token)

    def run(self, kernel: Callable[..., object], *args: Any, **attrs: Any) -> None:
        """Call a kernel as `call` does."""
        self.call(kernel, args, attrs)

    def address(self, array: Any) -> int:
        """Return where an array begins in memory, in bytes."""
        address: int = array.ctypes.data
        return address

    def synchronize(self) -> None:
        """Return at once: NumPy has done all that it was asked for."""

    def make_pool(self, limit: int | None, *, parent: Pool | None, growth: bool) -> Pool:
        """Return a pool that counts; host memory is taken as it is used, growth or not."""
        return CountingPool(limit, None if parent is None else _counting(parent))

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        """Return an uninitialised array of the shape and dtype, counted by the pool.

        Raises:
            OutOfPoolMemory: The pool's limit, or the host's memory, does not allow it.
        """
        nbytes = math.prod(shape) * dtype.itemsize
        (pool if type(pool) is CountingPool else _counting(pool)).reserve(nbytes)
        try:
            array = np.empty(shape, dtype) if nbytes < _ALIGNED_FROM else _aligned(shape, dtype)
        except MemoryError:
            pool.release(nbytes)
            raise OutOfPoolMemory(nbytes, None) from None
        except BaseException:
            pool.release(nbytes)
            if nbytes > sys.maxsize:  # NumPy calls a size past the address space a ValueError.
                raise OutOfPoolMemory(nbytes, None) from None
            raise
        return Storage(array, pool, nbytes)

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        """Copy a NumPy array of the storage's shape and dtype into it."""
        np.copyto(storage.array, array, casting="equiv")

    def to_host(self, array: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return a C-contiguous copy, never a view; `out` gets it where that is an array."""
        if out is None:
            return np.array(array, copy=True, order="C")
        np.copyto(out, array, casting="no")
        return out

    def copy_between(self, source: Any, target: Any) -> None:
        """Copy an array into the array ``target``."""
        np.copyto(target, source, casting="no")

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        """Copy an array of another backend into the array ``target``."""
        np.copyto(target, values_on_host(backend, source), casting="no")


def values_on_host(backend: Backend, array: Any) -> NDArray[Any]:
    """Return the values of a backend's array, in place where the host reads them without waiting.

    Args:
        backend: The backend.
        array: An array of it.
    """
    in_place = backend.host_readable and not backend.streamed
    return np.asarray(array if in_place else backend.to_host(array))


def available_host_memory() -> int | None:
    """Return the bytes that this process may still take, None where the system does not say.

    A host gives more than it has, and then ends the process that uses it, without an error to
    catch.
    """
    limits = [_of_the_host(), *(_left(limit, used) for limit, used in _CGROUPS)]
    return min((limit for limit in limits if limit is not None), default=None)


def _of_the_host() -> int | None:
    for line in _read(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) << 10  # It is in KiB, though it says kB.
    return None


def _left(limit: str, used: str) -> int | None:
    try:
        return max(0, int(_read(limit)) - int(_read(used)))
    except ValueError:  # There is no such file, or the limit is "max".
        return None


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
