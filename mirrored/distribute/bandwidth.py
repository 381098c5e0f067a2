"""The speed of collectives between devices by size, and a check of their sums.

Times and bandwidths are defined as in NVIDIA's nccl-tests, so that figures can be compared.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends.host import available_host_memory
from mirrored.backends.selftest.sums import known_sum, known_values
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device
from mirrored.devices import device as on_device
from mirrored.distribute.cross_device_ops import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from mirrored.distribute.cross_device_ops.connections import connection, ranks, streamed
from mirrored.errors import ResourceExhaustedError
from mirrored.ops import constant
from mirrored.program import function
from mirrored.variables import DeviceVariable

_FLOAT32 = np.dtype(np.float32)
_GIGA = 1e9  # Bandwidths are in GB/s of 10**9 bytes.

# Seconds that a turn takes at least, so that the clock's steps do not show, and on devices that are
# waited for, so that the end of the wait does not; but not more calls.
_TURN, _WAITED_TURN, _MOST_CALLS = 5e-3, 50e-3, 1000
# All-reduces before that: the first records, and connects; the second captures, where that is done.
_WARM_UP = 2

_LINE = "{:<25} {:>10} {:>10} {:>9} {:>9} {:>7}"
HEADING = _LINE.format("collective", "bytes", "time, us", "algbw", "busbw", "#wrong")

# What a measurement takes of each device, in arrays: what is added, the sum, and scratch memory.
_ARRAYS = 6
# And of the host, where sums are compared with the right ones.
_HOST_ARRAYS = 4


@dataclass(frozen=True, slots=True)
class Measurement:
    """One size of one collective, measured.

    Attributes:
        collective: Its name.
        ranks: How many devices took part: cards, where NCCL sums.
        nbytes: The bytes that each adds.
        count: The elements that each adds.
        dtype: What they are.
        seconds: The time of one all-reduce.
        wrong: How many elements of all devices' results are not the known sum.

    Example:
        >>> row = Measurement("NcclAllReduce", 4, 4000, 1000, "float32", 2e-6, 0)
        >>> row.algorithm_bandwidth, row.bus_bandwidth
        (2.0, 3.0)
    """

    collective: str
    ranks: int
    nbytes: int
    count: int
    dtype: str
    seconds: float
    wrong: int

    @property
    def algorithm_bandwidth(self) -> float:
        """The bytes of one device by the time, in GB/s."""
        return self.nbytes / self.seconds / _GIGA

    @property
    def bus_bandwidth(self) -> float:
        """The traffic per device link at the best possible schedule, in GB/s.

        The algorithm bandwidth times 2(n - 1)/n for n devices, which does not depend on their
        number: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md.
        """
        return self.algorithm_bandwidth * 2 * (self.ranks - 1) / self.ranks

    def __str__(self) -> str:
        """Return a line of a table below `HEADING`."""
        bandwidths = (f"{rate:.2f}" for rate in (self.algorithm_bandwidth, self.bus_bandwidth))
        time = f"{self.seconds * 1e6:.1f}"
        return _LINE.format(self.collective, self.nbytes, time, *bandwidths, self.wrong)


class _Recorded:
    """A collective as a training step has it: recorded, between values that stay on the devices.

    It sums a variable a device into another. Eager calls would show Python and fresh memory.
    """

    def __init__(self, devices: Sequence[Device], collective: CrossDeviceOps, count: int) -> None:
        self.ranks = len(devices)
        self._devices = devices
        sources = [_variable(d, known_values(i, count, _FLOAT32)) for i, d in enumerate(devices)]
        self._sums = sums = [_variable(d, np.zeros(count, np.float32)) for d in devices]

        def all_reduce() -> None:
            values = [source.read_value() for source in sources]
            (reduced,) = collective.batch_all_reduce("sum", [values])
            for target, value in zip(sums, reduced, strict=True):
                target.assign(value)

        self._all_reduce = function(all_reduce)

    def ask(self, times: int) -> None:
        for _ in range(times):
            self._all_reduce()

    def wait(self) -> None:
        for device in self._devices:
            device.backend.synchronize()

    def results(self) -> Iterator[NDArray[Any]]:
        return (total.numpy() for total in self._sums)


class _Queued:
    """NCCL's all-reduces as nccl-tests measures them: many are queued, and waited for once."""

    def __init__(self, devices: Sequence[Device], count: int) -> None:
        on = leaders(devices)
        self.ranks = len(on)
        self._backends = streamed(on)
        self._sends = [device.allocate((count,), _FLOAT32) for device in on]
        self._receives = [device.allocate((count,), _FLOAT32) for device in on]
        self._connection = connection(on)
        for number, (backend, storage) in enumerate(zip(self._backends, self._sends, strict=True)):
            backend.copy_from_host(storage, known_values(number, count, _FLOAT32))
        for stream, backend in zip(self._connection.streams, self._backends, strict=True):
            stream.wait(backend.record())

    def ask(self, times: int) -> None:
        sends, receives = ([s.array for s in group] for group in (self._sends, self._receives))
        for _ in range(times):
            self._connection.all_reduce(sends, receives, what="bandwidth")

    def wait(self) -> None:
        self._connection.finish()

    def results(self) -> Iterator[NDArray[Any]]:
        pairs = zip(self._backends, self._receives, strict=True)
        return (backend.to_host(storage.array) for backend, storage in pairs)


_Measured = _Recorded | _Queued


def collectives(devices: Sequence[Device]) -> list[CrossDeviceOps]:
    """Return one of each kind of collectives that can sum between devices.

    Example:
        >>> import mirrored as mr
        >>> from mirrored import devices
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> [type(each).__name__ for each in collectives(devices.logical_devices("GPU"))]
        ['ReductionToOneDevice', 'HierarchicalCopyAllReduce']
    """
    algorithms: list[CrossDeviceOps] = [ReductionToOneDevice(), HierarchicalCopyAllReduce()]
    return algorithms if why_no_nccl(devices) else [*algorithms, NcclAllReduce()]


def why_no_nccl(devices: Sequence[Device]) -> str | None:
    """Return in a sentence why NCCL has nothing to sum between devices; None: it has."""
    if not all(is_offloaded(device.backend) for device in devices):
        return "NCCL sums only between GPUs that are not simulated."
    first, *others = streamed(leaders(devices))
    return first.why_not_connected(others) if others else "All devices are on one card."


def leaders(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are NCCL's ranks: one a card, unless the environment asks for all."""
    return [devices[rank.leader] for rank in ranks([d.backend.memory for d in devices])]


def sizes(smallest: int = 1 << 10, largest: int = 1 << 30, factor: int = 8) -> list[int]:
    """Return sizes in bytes from one to another; every size is a multiple of the previous one.

    Example:
        >>> sizes(1024, 70_000, 8)
        [1024, 8192, 65536]
    """
    byte_counts = []
    while smallest <= largest:
        byte_counts.append(smallest)
        smallest *= factor
    return byte_counts


def largest_size(devices: Sequence[Device]) -> int | None:
    """Return the most bytes that can be measured by what is known of memory; None: any number.

    What a card has left is not known: where it is too little, `measure` ends early.
    """
    limits = []
    free = available_host_memory()
    if free is not None:
        on_host = sum(device.backend.host_readable for device in devices)
        limits.append(free // (on_host * _ARRAYS + _HOST_ARRAYS))
    for device in devices:
        if device.pool.limit is not None:
            limits.append((device.pool.limit - device.pool.current) // _ARRAYS)
    return max(0, min(limits)) if limits else None


def measure(
    devices: Sequence[Device],
    collective: CrossDeviceOps,
    nbytes: Sequence[int],
    *,
    turns: int = 7,
    after_timing: Callable[[], object] = lambda: None,
) -> Iterator[Measurement]:
    """Yield the cost of a collective's sums of float32, size by size.

    A size is summed twice before the clock runs. Then each turn asks for as many all-reduces as
    take 5 ms, or 50 on cards, waits once, and divides; the median of the turns counts.
    `NcclAllReduce` is asked for through its connection, with a rank a card; all others as a
    recorded step has them.

    Args:
        devices: The devices.
        collective: The collective.
        nbytes: How many bytes each device adds; it ends before the first size that a device has
            no memory for.
        turns: How many turns.
        after_timing: Called whenever something was timed, `timings(turns)` times a size.

    Raises:
        CollectiveError: A sum was not done in time, or failed.

    Example:
        >>> import mirrored as mr
        >>> from mirrored import devices
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> gpus = devices.logical_devices("GPU")
        >>> [(row.count, row.wrong) for row in measure(gpus, ReductionToOneDevice(), [1024, 2048])]
        [(256, 0), (512, 0)]
    """
    for size in nbytes:
        count = max(1, size // _FLOAT32.itemsize)
        try:
            row = _measured(devices, collective, count, turns, after_timing)
        except ResourceExhaustedError:
            return
        yield row


def timings(turns: int) -> int:
    """Return the number of timings for one size."""
    return _WARM_UP + 1 + turns


def _measured(
    devices: Sequence[Device],
    collective: CrossDeviceOps,
    count: int,
    turns: int,
    after_timing: Callable[[], object],
) -> Measurement:
    queued = isinstance(collective, NcclAllReduce)
    measured = _Queued(devices, count) if queued else _Recorded(devices, collective, count)
    waited = any(device.backend.streamed for device in devices)
    seconds = _seconds(measured, turns, _WAITED_TURN if waited else _TURN, after_timing)
    expected = known_sum(measured.ranks, count, _FLOAT32)
    wrong = sum(int(np.count_nonzero(result != expected)) for result in measured.results())
    return Measurement(
        collective=type(collective).__name__,
        ranks=measured.ranks,
        nbytes=count * _FLOAT32.itemsize,
        count=count,
        dtype=_FLOAT32.name,
        seconds=seconds,
        wrong=wrong,
    )


def _seconds(
    measured: _Measured, turns: int, turn: float, after_timing: Callable[[], object]
) -> float:
    """Return the median time of one all-reduce, of several rounds of a given duration."""

    def timed(times: int) -> float:
        start = time.perf_counter()
        measured.ask(times)
        measured.wait()
        seconds = (time.perf_counter() - start) / times
        after_timing()
        return seconds

    for _ in range(_WARM_UP):
        timed(1)
    times = min(_MOST_CALLS, max(1, round(turn / timed(1))))
    return float(np.median([timed(times) for _ in range(turns)]))


def _variable(device: Device, value: NDArray[Any]) -> DeviceVariable:
    with on_device(device):
        return DeviceVariable(constant(value), trainable=False)
