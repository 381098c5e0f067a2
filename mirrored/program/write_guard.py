"""Keeps enqueued steps from writing variables after a collective has failed.

Whether a step writes is decided on one device for all, by its guard; this is the host's say in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import Backend
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device
from mirrored.program.kernel_calls import Call

_DTYPE = np.dtype(np.float32)


class WriteGuard:
    """A number that a step reads once all its sums are there: it writes where that is finite.

    The number is in memory of the host, and the device copies it when it comes to the guard. So to
    shut it takes no call that could wait for a device whose kernels wait for each other, and no
    lock. A step that is past the guard writes on all devices, since its sums were there.

    Args:
        device: The device that decides.

    Attributes:
        array: The number, as the step has read it.

    Raises:
        ResourceExhaustedError: There is no room for it.
    """

    def __init__(self, device: Device) -> None:
        self._backend = device.backend
        self._storage = device.allocate((1,), _DTYPE)
        self.array: Any = self._storage.array
        self._number: NDArray[Any] = np.empty(1, _DTYPE)
        if is_offloaded(self._backend):
            self._number = self._backend.pinned((1,), _DTYPE)
        self.shut()

    def read(self) -> list[Call]:
        """Return the calls with which a step reads the number."""
        if is_offloaded(self._backend):
            return [Call(self._backend.bring, (self._number, self.array))]
        return [Call(np.copyto, (self.array, self._number))]

    def open(self) -> None:
        """Let steps pass. None that was asked for before may be left that must not."""
        self._number[...] = 0.0

    def shut(self) -> None:
        """Let no step pass that has not by now."""
        self._number[...] = np.nan


def spread_flag(
    origin: Backend, backends: Sequence[Backend], flags: Mapping[Any, Any]
) -> list[tuple[Backend, Call]]:
    """Return the calls, each on a stream, that bring the guard's decision to other memories.

    Args:
        origin: The guard's device.
        backends: The devices that write.
        flags: For each memory the flag that says whether variables may be written.
    """
    others = {place.memory: place for place in reversed(backends) if place.memory in flags}
    others.pop(origin.memory, None)
    copies: list[tuple[Backend, Call]] = []
    for memory, backend in others.items():
        # By way of a stream each: they need not wait for one another.
        source = origin.another() if is_offloaded(origin) else origin
        arrays = flags[origin.memory], flags[memory]
        copies.append((backend, Call(backend.copy_across, (source, *arrays))))
    return copies
