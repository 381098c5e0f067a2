"""Tensors whose copy to their device waits until something computes with them.

Input is given to replicas before anybody knows what reads it: a recorded function is fed from the
host's array directly, and needs no other copy of it, and what is constant in it is read from there.
"""

from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.devices import Device
from mirrored.devices.timing import copy_work, observers, tell
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor, new_id


def transfer(array: NDArray[Any], device: Device) -> Tensor:
    """Return a copy of a host array on `device`. It feeds data: it is no op and not logged."""
    storage = device.allocate(array.shape, array.dtype)
    start = perf_counter_ns() if observers else 0
    device.backend.copy_from_host(storage, array)
    if start:
        device.backend.synchronize()
        tell(copy_work(None, device, storage.nbytes), start)
    return Tensor(storage.array, storage, device)


class HostTensor(Tensor):
    """A tensor of a device that is still on the host.

    Args:
        host: The values, which nobody changes any more.
        device: The device that it belongs to.
    """

    __slots__ = ("_arrived", "_host")

    def __init__(self, host: NDArray[Any], device: Device) -> None:
        """Stand for a copy of `host` on `device`."""
        self._host = host
        self._arrived: Tensor | None = None
        self._device = device
        self._spec = TensorSpec(host.shape, host.dtype)
        self._id = new_id()
        self._logits = None

    def _copied(self) -> Tensor:
        if self._arrived is None:
            self._arrived = transfer(self._host, self._device)
        return self._arrived

    # What eager code computes with: to ask for it is to use the tensor.
    _array = property(lambda self: self._copied()._array)
    _storage = property(lambda self: self._copied()._storage)

    def to_feed(self) -> Any:
        """Return the host's array, from where a program's input is filled."""
        return self._host

    def numpy(self) -> Any:
        """Return a copy of the values on the host: an array, or a scalar for rank 0."""
        self._device.require()
        return np.array(self._host)[()]

    def copy_to(self, device: Device) -> Tensor:
        """Return this tensor where it belongs to `device` already, else one that does."""
        self._device.require()
        return self if device is self._device else HostTensor(self._host, device)
