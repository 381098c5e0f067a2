"""Tensors whose copy to their device waits until something computes with them.

Input is given to replicas before anybody knows what reads it: a recorded function is fed from the
host's array directly, and needs no other copy of it, and what is constant in it is read from there.
Rows of an array are not even gathered before.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from time import perf_counter_ns
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mirrored.devices import Device
from mirrored.devices.work_timing import copy_work, observers, tell
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor, new_id

# Batches are alike, and calls with the same specifications are known sooner.
_spec_of: Callable[..., TensorSpec] = lru_cache(TensorSpec)


def transfer(array: NDArray[Any], device: Device) -> Tensor:
    """Return a copy of a host array on `device`. It feeds data: it is no op and not logged."""
    storage = device.allocate(array.shape, array.dtype)
    start = perf_counter_ns() if observers else 0
    device.backend.copy_from_host(storage, array)
    if start:
        device.backend.synchronize()
        tell(copy_work(None, device, storage.nbytes), start)
    return Tensor(storage.array, storage, device, _spec_of(array.shape, array.dtype))


class HostRows(tuple[NDArray[Any], NDArray[np.int64]]):
    """Rows of an array on the host, which are gathered where they are wanted.

    It is made of the array, which nobody changes any more, and the numbers of the rows, which are
    there: a tuple of them, since one is made for each column of a batch.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rows together."""
        array, rows = self
        return rows.shape + array.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their dtype."""
        return self[0].dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the rows as an array, for NumPy."""
        array, rows = self
        gathered = array.take(rows, axis=0)
        return gathered if dtype is None else gathered.astype(dtype, copy=False)


def fill(targets: Sequence[NDArray[Any]], sources: Sequence[Any]) -> None:
    """Write into arrays on the host what tensors have as `_feed`, of the same shapes and dtypes."""
    for target, source in zip(targets, sources, strict=True):
        if type(source) is HostRows:
            array, rows = source
            array.take(rows, 0, target, "clip")  # Which lets NumPy write right into the target.
        else:
            target[...] = source


class HostTensor(Tensor):
    """A tensor of a device that is still on the host.

    Args:
        host: The values, which nobody changes any more.
        device: The device that it belongs to.
        spec: Their shape and dtype, where they are known.
    """

    __slots__ = ("_arrived", "_host")

    def __init__(
        self, host: NDArray[Any] | HostRows, device: Device, spec: TensorSpec | None = None
    ) -> None:
        """Stand for a copy of `host` on `device`."""
        self._host = host
        self._arrived: Tensor | None = None
        self._device = device
        self._spec = _spec_of(host.shape, host.dtype) if spec is None else spec
        self._id = new_id()
        self._logits = None
        self._keras_mask = None

    @classmethod
    def of_each(
        cls, hosts: Sequence[NDArray[Any] | HostRows], device: Device
    ) -> "list[HostTensor]":
        """Return a tensor of each of the values, which are alike in shape and dtype."""
        spec = _spec_of(hosts[0].shape, hosts[0].dtype)
        if spec.dtype.kind == "O":
            raise TypeError(
                "Strings cannot be copied to devices. Received: a batch with strings for "
                "replicas. Parse them in a function of the dataset's `map`."
            )
        return [cls(host, device, spec) for host in hosts]

    def _copied(self) -> Tensor:
        if self._arrived is None:
            self._arrived = transfer(self.host_array(), self._device)
        return self._arrived

    # What eager code computes with: to ask for it is to use the tensor.
    _array = property(lambda self: self._copied()._array)
    _storage = property(lambda self: self._copied()._storage)

    _feed = property(attrgetter("_host"))

    def host_array(self) -> NDArray[Any]:
        """Return the values on the host; rows are gathered once."""
        if type(self._host) is HostRows:
            self._host = np.asarray(self._host)
        return cast("NDArray[Any]", self._host)

    def numpy(self) -> Any:
        """Return a copy of the values on the host: an array, or a scalar for rank 0."""
        self._device.require()
        return np.array(self.host_array())[()]

    def copy_to(self, device: Device) -> Tensor:
        """Return this tensor where it belongs to `device` already, else one that does."""
        self._device.require()
        return self if device is self._device else HostTensor(self._host, device)
