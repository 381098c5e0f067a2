"""Small results of a step: written to host memory round-robin, or to memory of returned tensors.

The step's last kernel does it, as a part of a captured graph. So between two steps nothing is
allocated, and nothing copied.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import Storage
from mirrored.backends.stream_backend import StreamBackend, is_offloaded
from mirrored.devices import Device
from mirrored.ops.spec import TensorSpec
from mirrored.program.dataflow import RETVAL, SHARED, Graph, Node, Value
from mirrored.program.kernel_calls import Call, kernel_calls

# Steps whose results are on their way at a time, and the bytes that they may take of the host:
# without waiting for each the device never stands still, and a loss that is not finite is still
# seen soon.
_MOST_RESULTS = 8
_RESULT_BYTES = 1 << 26
# Calls whose results share a piece of memory, and its bytes, at most: it lasts for as long as one
# of these results does.
_MOST_CALLS, _MOST_BYTES = 64, 1 << 14


class DeviceResults:
    """The small results of one device, and the memory that they are written to.

    Args:
        device: The device.
        stream: The backend on whose stream a step begins in that memory.
        kernels: Its `report_kernels`.
        block: The memory where results lie together, as bytes.
        turns: The number of steps whose results may be on their way at a time.

    Attributes:
        block: As given.
        stream: As given.
        pinned: For each of the turns the host's copy.
        calls: What ends a step.

    Raises:
        ResourceExhaustedError: There is no room for it.
    """

    def __init__(
        self,
        device: Device,
        stream: StreamBackend,
        kernels: tuple[Callable[..., None], Callable[..., None]],
        block: Any,
        turns: int,
    ) -> None:
        self.block = block
        self.pinned: NDArray[Any] = stream.pinned((turns, block.nbytes), np.dtype(np.uint8))
        self._device = device
        self.stream = stream
        self._state = device.allocate((4,), np.dtype(np.uint64))
        report, self._aims = kernels
        output = Value(TensorSpec((block.nbytes,), np.dtype(np.uint8)), device)
        node = Node(RETVAL, (output,), {}, output, SHARED)
        calls = kernel_calls(stream, report, self._state.array, block)
        self.calls: list[Call] = [call._replace(node=node) for call in calls]
        # The memory of results of calls, for how many there is room, and how many were asked for.
        self._kept: Storage | None = None
        self._left = self._asked = 0
        self._is_idle = False

    def to_host(self) -> None:
        """Let the steps to come put their results into `pinned`, from the first on."""
        self.forget()
        self._aim(self.pinned.ctypes.data, len(self.pinned))

    def to_nobody(self) -> None:
        """Let the steps to come keep their results to themselves."""
        if not self._is_idle:
            self.forget()
            self._aim(0, 1)
            self._is_idle = True

    def make_room(self) -> None:
        """Let the next step put its results into memory of their own.

        Raises:
            ResourceExhaustedError: The device has no room for it.
        """
        if not self.has_room(1):
            count = max(1, min(_MOST_CALLS, _MOST_BYTES // self.block.nbytes))
            kept = self._device.allocate((count * self.block.nbytes,), np.dtype(np.uint8))
            self.forget()  # Where an interrupt comes now, the next step gets an address again.
            self._aim(self.stream.address(kept.array), count)
            self._kept, self._left, self._asked = kept, count, 0

    def has_room(self, steps: int) -> bool:
        """Return whether N steps may put their results where the last ones did."""
        return self._kept is not None and self._left >= steps

    def asked(self) -> None:
        """Note that a step is asked for."""
        self._left, self._asked = self._left - 1, self._asked + 1

    def place(self, value: Value, array: Any) -> int | None:
        """Return where in the block a result is, in bytes; None where it is elsewhere."""
        if value.device is not self._device:
            return None
        start = self.stream.address(array) - self.stream.address(self.block)
        return start if 0 <= start <= self.block.nbytes - array.nbytes else None

    def returned(self, value: Value, place: int) -> tuple[Any, Storage]:
        """Return what the last step put into memory of its own: a result, by its place."""
        if self._kept is None:
            raise RuntimeError("A step without memory for its results returns no results.")
        start = place + (self._asked - 1) * self.block.nbytes
        part = self._kept.array[start : start + value.nbytes]
        return part.view(value.spec.dtype).reshape(value.spec.shape), self._kept

    def forget(self) -> None:
        """Assume that nobody knows where the next step would put its results."""
        self._kept, self._left, self._is_idle = None, 0, False

    def _aim(self, address: int, count: int) -> None:
        state, size = self._state.array, self.block.nbytes
        self.stream.run(self._aims, self.stream.xp, state, address, count, size)


class SmallResults:
    """The small results of a program's steps on all devices.

    Args:
        blocks: For each device the memory that holds its results.
        turns: The number of steps whose results may be on their way at a time.
        values: All results.
        arrays: The arrays of the results.

    Raises:
        ResourceExhaustedError: A device has no room for it.
    """

    def __init__(
        self,
        blocks: Mapping[Device, Any],
        turns: int,
        values: Sequence[Value],
        arrays: Sequence[Any],
    ) -> None:
        self._values = values
        self._arrays = arrays
        self._all: list[DeviceResults] = []
        for device, block in blocks.items():
            if is_offloaded(device.backend) and block.nbytes:
                kernels = device.backend.report_kernels
                if kernels is not None:
                    part = DeviceResults(device, device.backend, kernels, block, turns)
                    self._all.append(part)
        self._of = [self._reporter_of(*pair) for pair in zip(values, arrays, strict=True)]

    def ends(self) -> list[tuple[StreamBackend, list[Call]]]:
        """Return what ends a step, on which backends."""
        return [(part.stream, part.calls) for part in self._all]

    def turn(self, number: int) -> list[tuple[StreamBackend, Any, NDArray[Any]]]:
        """Return for each device its backend, the block, and the host's copy of it by turn."""
        return [(part.stream, part.block, part.pinned[number]) for part in self._all]

    def begin(self, steps: int, *, report: bool) -> None:
        """Let N steps report to the host, or not; call this before the first."""
        for part in self._all:
            if report:
                part.to_host()
            elif not part.has_room(steps):
                part.to_nobody()

    def asked(self) -> None:
        """Note that a step is asked for; `forget` where it may not have been after all."""
        for part in self._all:
            part.asked()

    def forget(self) -> None:
        """Assume that nobody knows where the next step would put its results."""
        for part in self._all:
            part.forget()

    def make_room(self) -> list[Storage | None]:
        """Give the next step memory for all its results: for those that it does not tell, here.

        Raises:
            ResourceExhaustedError: A device has no room for it.
        """
        for part in self._all:
            part.make_room()
        pairs = zip(self._values, self._of, strict=True)
        return [value.device.allocate(*value.spec) if of is None else None for value, of in pairs]

    def returned(self, storages: Sequence[Storage | None]) -> list[tuple[Any, Storage]]:
        """Return the last step's results, each with what keeps its memory: from `make_room`."""
        results = []
        all_of_them = zip(self._values, self._arrays, self._of, storages, strict=True)
        for value, array, of, storage in all_of_them:
            if of is not None:
                part, place = of
                results.append(part.returned(value, place))
            elif storage is not None:
                value.device.backend.copy_between(array, storage.array)
                results.append((storage.array, storage))
        return results

    def _reporter_of(self, value: Value, array: Any) -> tuple[DeviceResults, int] | None:
        for part in self._all:
            place = part.place(value, array)
            if place is not None:
                return part, place
        return None


def turns_of(graph: Graph) -> int:
    """Return of how many steps the host may have results on their way at a time."""
    nbytes = sum(value.nbytes for value in graph.outputs)
    return max(1, min(_MOST_RESULTS, _RESULT_BYTES // max(nbytes, 1)))
