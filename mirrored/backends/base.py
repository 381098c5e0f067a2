"""What a kind of hardware has to offer so that the rest of the library can stay ignorant of it.

A backend allocates counted memory and moves arrays; it knows nothing of logical devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

MEGABYTE = 1 << 20


class Pool(Protocol):
    """A share of a device's memory: what may be used, what is, and what was at most."""

    @property
    def limit(self) -> int | None:
        """Hard limit in bytes, None for no limit."""
        ...

    @property
    def parent(self) -> Pool | None:
        """The pool of the whole card where several pools share one, otherwise None."""
        ...

    @property
    def current(self) -> int:
        """Bytes in use now."""
        ...

    @property
    def peak(self) -> int:
        """The most bytes ever in use at once since the start or the last ``reset_peak``."""
        ...

    def reset_peak(self) -> None:
        """Start measuring the peak again from what is in use now."""
        ...

    def reserve(self, nbytes: int) -> None:
        """Count ``nbytes`` as used; OutOfPoolMemory, with nothing counted, past a limit."""
        ...

    def release(self, nbytes: int) -> None:
        """Give ``nbytes`` back. Takes no lock: the garbage collector may call it anywhere."""
        ...


class Storage:
    """Counted memory that goes back to its pool when the last reference to it goes.

    Whoever keeps a view of ``array`` must keep the storage too, or the memory is counted as free
    while it is still used.

    Attributes:
        array: The array that owns the memory: C-contiguous, uninitialised, of the backend's kind.
        nbytes: The bytes that were counted for it.
    """

    __slots__ = ("__weakref__", "_pool", "array", "nbytes")

    def __init__(self, array: Any, pool: Pool, nbytes: int) -> None:
        self.array = array
        self.nbytes = nbytes
        self._pool = pool

    def __del__(self) -> None:
        self._pool.release(self.nbytes)


class Backend(Protocol):
    """Arrays on one physical device."""

    @property
    def xp(self) -> ModuleType:
        """The array module: ``numpy``, or one that looks like it."""
        ...

    @property
    def kernels(self) -> Mapping[str, Callable[..., None]]:
        """Kernels, by op name, that replace the plain ``xp`` one where that was measured to pay."""
        ...

    @property
    def host_readable(self) -> bool:
        """Whether the host reads the arrays' values at no cost."""
        ...

    def run(self, kernel: Callable[..., None], *args: Any, **attrs: Any) -> None:
        """Call a kernel on arrays of this backend; floating-point exceptions are results."""
        ...

    def make_pool(self, limit: int | None, *, parent: Pool | None, growth: bool) -> Pool:
        """Return a pool of at most ``limit`` bytes, inside ``parent`` where there is one.

        With ``growth`` it starts small and extends; without, it takes its memory at the start
        where the hardware has memory to take.
        """
        ...

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        """Return uninitialised memory for an array; OutOfPoolMemory where there is too little."""
        ...

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        """Copy a NumPy array of the storage's shape and dtype into it."""
        ...

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a NumPy copy, never a view."""
        ...

    def copy_between(self, source: Any, target: Any) -> None:
        """Copy an array of another device, of any backend, into the array ``target``."""
        ...


@dataclass(frozen=True, slots=True)
class Hardware:
    """One physical device as a backend found it, before anything on it was used.

    Attributes:
        device_type: 'CPU' or 'GPU'.
        ordinal: Its number among all of its type, hidden ones included.
        name: What to call it in messages.
        open_backend: Returns the backend for it; nothing on the device is touched before.
        memory: Bytes that all its logical devices share at most, None for no limit.
        simulated: Whether it stands in for hardware that is not there.
        details: What ``get_device_details`` returns.
    """

    device_type: str
    ordinal: int
    name: str
    open_backend: Callable[[], Backend]
    memory: int | None = None
    simulated: bool = False
    details: Mapping[str, object] = field(default_factory=dict)


class OutOfPoolMemory(Exception):
    """A pool, or the host behind it, cannot give what was asked of it.

    Attributes:
        asked: The bytes asked for.
        pool: The pool that refused; None where the machine itself had no more.
    """

    def __init__(self, asked: int, pool: Pool | None) -> None:
        super().__init__(asked, pool)
        self.asked = asked
        self.pool = pool
