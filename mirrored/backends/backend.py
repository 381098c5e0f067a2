"""The interface of a backend: the operations of one kind of hardware.

A backend allocates counted memory and moves arrays; it knows nothing of logical devices.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mirrored._logging import logger

MEGABYTE = 1 << 20


class Pool(Protocol):
    """A share of a device's memory: what may be used, what is, and what was at most."""

    @property
    def limit(self) -> int | None:
        """Hard limit in bytes, None for no limit."""

    @property
    def current(self) -> int:
        """Bytes in use now."""

    @property
    def peak(self) -> int:
        """The most bytes ever in use at once since the start or the last ``reset_peak``."""

    def reset_peak(self) -> None:
        """Start measuring the peak again from what is in use now."""

    def release(self, nbytes: int) -> None:
        """Give ``nbytes`` back. Takes no lock: the garbage collector may call it anywhere."""

    def close(self) -> None:
        """Give what is not in use back to the hardware; nothing more is asked of the pool."""


class Storage:
    """Counted memory that goes back to its pool when the last reference to it goes.

    Whoever keeps a view of ``array`` must keep the storage too, or the memory is counted as free
    while it is still used.

    Attributes:
        array: The array that owns the memory: C-contiguous, uninitialised, of the backend's kind.
        nbytes: The bytes that were counted for it.
        pool: Where they were counted.
        parts: The numbers of the tensors that it was cut into, where it was.
    """

    __slots__ = ("__weakref__", "array", "nbytes", "parts", "pool")

    parts: list[int]

    def __init__(self, array: Any, pool: Pool, nbytes: int) -> None:
        self.array = array
        self.nbytes = nbytes
        self.pool = pool

    def __del__(self) -> None:
        self.pool.release(self.nbytes)


class OwnKernel(Protocol):
    """A backend's own kernel of an op, in the place of the one that the op defines."""

    @property
    def run(self) -> Callable[..., None]:
        """Called as the op's kernel is: with `xp`, the result, the inputs and the attributes."""

    @property
    def workspace(self) -> Callable[..., tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]] | None:
        """From the inputs' specs and the attributes to shapes and dtypes of scratch arrays."""

    @property
    def asks(self) -> bool:
        """Whether `workspace` takes `xp` before these."""

    @property
    def verdicts(self) -> int:
        """The number of rows of the first scratch array where 0 stands for a right result."""


class Backend(Protocol):
    """Arrays of one logical device."""

    @property
    def xp(self) -> Any:
        """What kernels are written against: ``numpy``, or what launches kernels on a device."""

    @property
    def kernels(self) -> Mapping[str, OwnKernel]:
        """The backend's own kernels by op name; an op that is not here has its `xp` kernel."""

    @property
    def host_readable(self) -> bool:
        """Whether the arrays are NumPy's, in memory that the host reads too.

        Ops run their own kernels there, with an `xp` of NumPy's interface, unless `kernels` has
        others, which are written against `xp` as well.
        """

    @property
    def streamed(self) -> bool:
        """Whether work is queued on streams, so that calls return before it is done.

        Its values can be read once it is waited for. What has streams, or memory of its own, is a
        `StreamBackend`, whose programs run beside the host.
        """

    @property
    def memory(self) -> Hashable:
        """Which memory the arrays are in: kernels read all arrays of one memory directly."""

    def run(self, kernel: Callable[..., object], *args: Any, **attrs: Any) -> None:
        """Call a kernel as `call` does, whose arguments these are."""

    def call(
        self, kernel: Callable[..., object], args: Sequence[Any], attrs: Mapping[str, Any]
    ) -> None:
        """Call a kernel on arrays of this backend; floating-point exceptions are results.

        Where work is queued, calls of the backend that the kernel makes are a part of it.
        """

    def address(self, array: Any) -> int:
        """Return where an array begins in its memory, in bytes."""

    def synchronize(self) -> None:
        """Wait until all that was asked of the device is done."""

    def make_pool(self, limit: int | None, *, parent: Pool | None, growth: bool) -> Pool:
        """Return a pool of at most ``limit`` bytes, inside ``parent`` where there is one.

        With ``growth`` it starts small and extends; without, it takes its memory at the start
        where the hardware has memory to take.
        """

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        """Return uninitialised memory for an array; OutOfPoolMemory where there is too little."""

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        """Copy a NumPy array of the storage's shape and dtype into it."""

    def to_host(self, array: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return a NumPy copy, never a view; `out`, of the array's shape and dtype, gets it."""

    def copy_between(self, source: Any, target: Any) -> None:
        """Copy an array of this backend, or one of NumPy, into the array ``target``."""

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        """Copy an array of another backend into the array ``target`` of this one."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One physical device as a backend found it, before anything on it was used.

    Attributes:
        device_type: 'CPU' or 'GPU'.
        ordinal: Its number among all of its type, hidden ones included.
        name: What to call it in messages.
        open_backend: Returns a backend for a logical device of it, from the priority of that one's
            work, lower being more urgent, or None; touches nothing there yet.
        memory: Bytes that all its logical devices share at most, None for no limit.
        simulated: Whether it stands in for hardware that is not there.
        details: What ``get_device_details`` returns.
    """

    device_type: str
    ordinal: int
    name: str
    open_backend: Callable[[int | None], Backend]
    memory: int | None = None
    simulated: bool = False
    details: Mapping[str, object] = field(default_factory=dict)


class Platform:
    """One kind of hardware: which devices of it there are, and what serves them.

    A platform that is registered, by `mirrored.backends.register`, is asked for its devices
    whenever somebody looks which GPUs there are.
    """

    def hardware(self) -> Sequence[Hardware]:
        """Return the devices that this process may use; it looks, and starts nothing."""
        raise NotImplementedError

    def set_deterministic(self) -> None:
        """Let devices that are connected from now on add in the same order in every run.

        By default they do.

        Raises:
            RuntimeError: It is too late for that in this process.
        """

    def report(self, used: Iterable[Hardware]) -> Iterable[str]:
        """Yield what `python -m mirrored devices` says of drivers and libraries; nothing here.

        Args:
            used: All devices of this process.
        """
        return ()

    def fingerprint(self, used: Iterable[Hardware]) -> Mapping[str, str]:
        """Return by name what the bits of results on devices of this kind depend on; nothing here.

        Args:
            used: All devices of this process.
        """
        return {}


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


_LEADING_NUMBER = re.compile(r"\s*\+?(\d+)")


def visible(devices: Sequence[Hardware], ids: Sequence[str] = ()) -> list[Hardware]:
    """Return the devices that CUDA_VISIBLE_DEVICES shows, in its order; see `visible_ordinals`."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [devices[ordinal] for ordinal in visible_ordinals(setting, len(devices), ids)]


def visible_ordinals(setting: str | None, count: int, ids: Sequence[str] = ()) -> list[int]:
    """Return the ordinals that a value of CUDA_VISIBLE_DEVICES selects, in its order.

    Entries from the first invalid one on are ignored, and a repeated entry hides every card, as
    in CUDA. Parts of a card (MIG) are not supported: a warning says so.

    Args:
        setting: The variable's value; None where it is not set, which hides nothing.
        count: How many cards there are.
        ids: The cards' unique ids, for entries such as ``GPU-8932f937``; an entry may be any
            beginning of an id that only one card has.

    Example:
        >>> visible_ordinals("2,0,7,1", count=4)
        [2, 0]
        >>> visible_ordinals("-1", count=4)
        []
    """
    if setting is None:
        return list(range(count))
    selected: list[int] = []
    for entry in setting.split(","):
        ordinal = _ordinal(entry, count, ids)
        if ordinal is None:
            if entry.strip().startswith("MIG-"):
                logger.warning(
                    "Ignored CUDA_VISIBLE_DEVICES from its entry %r on: parts of a card (MIG) are "
                    "not supported. Name whole cards, by number or id (`nvidia-smi -L`), and "
                    "switch MIG off on them (`nvidia-smi -i <card> -mig 0`).",
                    entry.strip(),
                )
            break
        if ordinal in selected:
            return []
        selected.append(ordinal)
    return selected


def _ordinal(entry: str, count: int, ids: Sequence[str]) -> int | None:
    """Return the card that one entry names, or None."""
    number = _LEADING_NUMBER.match(entry)
    if number is not None:
        ordinal = int(number[1])
        return ordinal if ordinal < count else None
    name = entry.strip()
    matches = [i for i, unique in enumerate(ids) if name and unique.startswith(name)]
    return matches[0] if len(matches) == 1 else None
