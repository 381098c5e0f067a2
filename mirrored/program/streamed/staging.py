"""Feeds and reads a streamed program while it runs, through pinned memory, round-robin.

While a step computes, the next batch is on its way to the device, and the last results to the host.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import Backend, Storage
from mirrored.backends.stream_backend import StreamBackend, is_offloaded
from mirrored.devices import Device
from mirrored.program.buffers import Buffers
from mirrored.program.dataflow import Value
from mirrored.program.streamed.stream_plan import Infeed

# Batches that are on the host, on their way or on the device at a time.
_SETS = 2


class _Side:
    """One of the places that a batch is brought through."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.storage: Storage = device.allocate(
            (nbytes,), np.dtype(np.uint8), "the memory through which batches are copied"
        )
        self.pinned: NDArray[Any] = np.empty(0, np.uint8)
        # When the pinned memory may change again, and when that of the device may: what had the
        # same memory before may not be done with it.
        self.uploaded: Any = None
        self.consumed: Any = None
        if is_offloaded(device.backend):
            self.pinned = device.backend.pinned((nbytes,), np.dtype(np.uint8))
            self.consumed = device.backend.record()


class _Feeder:
    """Feeds one device for one replica.

    Args:
        feed: What it is fed.
        block: The memory that the program reads it from.
        stream: The backend on whose stream the program begins.

    Raises:
        ResourceExhaustedError: The device has no room for it.
    """

    def __init__(self, feed: Infeed, block: Any, stream: StreamBackend) -> None:
        self._feed = feed
        self._block = block
        self._stream = stream
        self._sides = [_Side(feed.device, feed.block.nbytes) for _ in range(_SETS)]

    def array(self, side: int, value: Value) -> NDArray[Any]:
        """Return the pinned array that a value is fed from."""
        start, (shape, dtype) = self._feed.places[value], value.spec
        raw = self._sides[side].pinned[start : start + value.nbytes]
        return raw.view(dtype).reshape(shape)

    def free(self, side: int) -> None:
        """Wait until the pinned memory of a side may change."""
        if self._sides[side].uploaded is not None:
            self._stream.wait_on_host(self._sides[side].uploaded)

    def bring(self, side: int) -> None:
        """Bring what was written to the program, which does not read it before."""
        input_, stream = self._sides[side], self._stream
        if not input_.storage.nbytes:
            return
        input_.uploaded, input_.consumed = stream.feed(
            input_.pinned, input_.storage.array, self._block, input_.consumed
        )


class Staging:
    """Feeds the steps of a program.

    Args:
        feeds: What is fed.
        arrays: Where the program's values are.
        inputs: The values that feeds write.
        counters: The values of key and number of each draw.
        streams: For each memory the backend on whose stream the program begins there.

    Attributes:
        inputs: For each side the pinned arrays of the inputs.

    Raises:
        ResourceExhaustedError: A device has no room for the batches on their way.
    """

    def __init__(
        self,
        feeds: Sequence[Infeed],
        arrays: Buffers,
        inputs: Sequence[Value],
        counters: Sequence[Value],
        streams: Mapping[Any, StreamBackend],
    ) -> None:
        self._feeders: list[_Feeder] = []
        of_value: dict[Value, _Feeder] = {}
        for feed in feeds:
            if is_offloaded(feed.device.backend):
                block = arrays.bytes_of(feed.block)
                feeder = _Feeder(feed, block, streams[feed.device.backend.memory])
                self._feeders.append(feeder)
                of_value |= dict.fromkeys(feed.places, feeder)

        def array(side: int, value: Value) -> Any:
            # What is on the host is written in place: nothing there runs beside it.
            return of_value[value].array(side, value) if value in of_value else arrays.of(value)

        self.inputs = [[array(side, value) for value in inputs] for side in range(_SETS)]
        self._counters = [[array(side, value) for value in counters] for side in range(_SETS)]
        self._turn = 0

    def begin(self) -> int:
        """Return the side whose turn it is, free to be written."""
        side = self._turn
        self._turn = (side + 1) % _SETS
        for feeder in self._feeders:
            feeder.free(side)
        return side

    def wait(self) -> None:
        """Wait until no pinned memory is read any more."""
        for side in range(_SETS):
            for feeder in self._feeders:
                feeder.free(side)

    def bring(self, side: int, draws: Sequence[Any]) -> None:
        """Bring a side's batch, with key and number of each draw, to the program."""
        for target, draw in zip(self._counters[side], draws, strict=True):
            target[:] = counter_of(draw)
        for feeder in self._feeders:
            feeder.bring(side)


class Result:
    """What one step left for the host: its results, and whether it was allowed to write.

    Args:
        values: The results.
        flag: The flag of the guard, with the backend of its memory; None where there is none.
        told: What the step itself puts into the host's memory, each with its backend: a block in
            which small results lie, and perhaps the flag, and the host's copy.
        streams: For each memory the backend that reads there.

    Attributes:
        arrays: The results, once they are there.
        step: The step's number.
        undo: Takes back the step's draws and all behind them.
    """

    def __init__(
        self,
        values: Sequence[tuple[Value, Any]],
        flag: tuple[Any, Backend] | None,
        reports: Sequence[tuple[StreamBackend, Any, NDArray[Any]]],
        streams: Mapping[Any, StreamBackend],
    ) -> None:
        self._reports = [(streams[place.memory], block, copy) for place, block, copy in reports]
        self._parts: list[tuple[StreamBackend, Any, Any]] = []  # What is copied to the host.
        self._host: list[tuple[Any, Any]] = []
        self._events: list[tuple[StreamBackend, Any]] | None = None
        self.arrays: list[NDArray[Any]] = [
            self._target(array, streams.get(value.device.backend.memory)) for value, array in values
        ]
        self._flag: NDArray[Any] | None = None
        if flag is not None:
            self._flag = self._target(flag[0], streams.get(flag[1].memory))
        self.step = 0
        self.undo: Callable[[], None] | None = None

    def _target(self, array: Any, stream: StreamBackend | None) -> NDArray[Any]:
        """Return the host's array for a result, which is brought there from now on."""
        if stream is None:
            target = np.empty(array.shape, array.dtype)
            self._host.append((target, array))
            return target
        for _, block, copy in self._reports:
            start = stream.address(array) - stream.address(block)
            if 0 <= start <= block.nbytes - array.nbytes:
                part: NDArray[Any] = copy[start : start + array.nbytes].view(array.dtype)
                return part.reshape(array.shape)
        target = stream.pinned(array.shape, array.dtype)
        self._parts.append((stream, array, target))
        return target

    def fetch(self, step: int) -> None:
        """Let what a step left be copied to the host when it is done, where it does not do that."""
        self.step, self._events = step, None
        self._events = self._fetched()

    def _fetched(self) -> list[tuple[StreamBackend, Any]]:
        copies: dict[StreamBackend, list[tuple[Any, Any]]] = {
            stream: [] for stream, _, _ in self._reports
        }
        for stream, array, target in self._parts:
            copies.setdefault(stream, []).extend([(array, target)] if target.size else [])
        for target, array in self._host:
            np.copyto(target, array)
        return [(stream, stream.fetch(of_stream)) for stream, of_stream in copies.items()]

    def wait(self) -> bool:
        """Wait until it is there; return whether the step was allowed to write."""
        # The step is done, whatever kept its results from being asked for the first time.
        for stream, event in self._fetched() if self._events is None else self._events:
            stream.wait_on_host(event)
        return self._flag is None or bool(self._flag[0])


def counter_of(draw: tuple[tuple[int, int], int]) -> NDArray[Any]:
    """Return key and number of a draw as kernels read them: three words of 64 bits."""
    (first, second), number = draw
    return np.array((first, second, number % (1 << 64)), np.uint64)
