"""Observers of the time that kernels and copies take on a device.

The profiler stands above the ops and is named here from there. While nobody measures, all that an
op does for it is to see that a list is empty.
"""

from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from mirrored.devices.logical_device import Device

# Instead of a replica's number: what is done where all replicas have met.
ALL_REPLICAS = -1


class Work(NamedTuple):
    """What took time.

    Attributes:
        name: What it is called: the op's name, "AllReduce", "Memcpy DtoD", "Infeed", "Prefetch",
            "wait".
        kind: "compute", "collective", "transfer", "data" or "wait".
        op: The name of the op that did it.
        device: Where it was done, as in 'GPU:0'; or "dataset".
        bytes_in: How many bytes it read.
        bytes_out: How many it wrote.
        source: Where a copy came from, as in 'GPU:0' or 'host'; empty for all else.
        whose: What did it, if that is not one replica or all of them: "part 0 of 2" of a batch.
    """

    name: str
    kind: str
    op: str
    device: str
    bytes_in: int = 0
    bytes_out: int = 0
    source: str = ""
    whose: str = ""


class Observer(Protocol):
    """Somebody who measures."""

    def add(self, work: Work, replica: int | None, start: int, end: int) -> None:
        """Take note of something that took time; any thread calls it.

        Args:
            work: What it was.
            replica: Whose it was, the first of those of `work.whose`, `ALL_REPLICAS`, or None: that
                of the code that is running.
            start: When it began, in nanoseconds of `time.perf_counter_ns`.
            end: When it ended.
        """


# Nobody or one; a list so that looking is as quick as it can be, and sees all threads.
observers: list[Observer] = []


def tell(work: Work, start: int) -> None:
    """Tell whoever measures what the running code has done since `start`."""
    end = perf_counter_ns()
    for observer in observers:
        observer.add(work, None, start, end)


def kernel_work(
    op: str, sources: Iterable[Device], device: Device, bytes_in: int, bytes_out: int
) -> Work:
    """Return what a kernel does; a sum of what several devices hold is an all-reduce."""
    if op == "AddN" and len(set(sources)) > 1:
        return Work("AllReduce", "collective", op, device.short_name, bytes_in, bytes_out)
    return Work(op, "compute", op, device.short_name, bytes_in, bytes_out)


def copy_work(source: Device | None, target: Device | None, nbytes: int) -> Work:
    """Return what a copy from device to device does; None: NumPy's memory on the host."""
    ends = "".join("H" if end is None or end.type == "CPU" else "D" for end in (source, target))
    return Work(
        f"Memcpy {ends[0]}to{ends[1]}",
        "transfer",
        "_Send",
        "host" if target is None else target.short_name,
        nbytes,
        nbytes,
        "host" if source is None else source.short_name,
    )


def copy_within(device: Device, source: Any, target: Any, op: str) -> None:
    """Copy an array of a device into another one there, as a variable's read or write does."""
    start = perf_counter_ns() if observers else 0
    device.backend.copy_between(source, target)
    if start:
        device.backend.synchronize()
        tell(Work(op, "compute", op, device.short_name, source.nbytes, source.nbytes), start)


def copy_from_host(device: Device, source: NDArray[Any], target: Any) -> None:
    """Copy an array of the host, which may change afterwards, into one of a device."""
    start = perf_counter_ns() if observers else 0
    device.backend.copy_between(source, target)
    if start:
        device.backend.synchronize()
        tell(copy_work(None, device, source.nbytes), start)
