"""The figures are nccl-tests' own, the sums are looked at, and memory sets the largest size."""

import itertools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrored import devices
from mirrored.devices import Device, LogicalDeviceConfiguration
from mirrored.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    ReductionToOneDevice,
    bandwidth,
)
from mirrored.distribute.bandwidth import Measurement, measure
from mirrored.distribute.cross_device_ops.connections import connection
from mirrored.ops import Tensor

REFERENCE = ReductionToOneDevice()


class OffByOne(CrossDeviceOps):
    """Adds one to the first element of every sum that is no scalar."""

    def reduce_implementation(
        self, reduce_op: Any, values: Sequence[Tensor], destination: Device, options: Any
    ) -> Tensor:
        total = REFERENCE.reduce_implementation(reduce_op, values, destination, options)
        with devices.device(destination):
            return total + np.eye(1, total.size, dtype=np.float32)[0]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("mirrored")
    before = logger.level
    logger.setLevel(logging.WARNING)
    yield
    logger.setLevel(before)


def gpus(count: int, memory_limit: float | None = None) -> tuple[Device, ...]:
    devices.set_simulated_gpus(count, memory_limit=memory_limit)
    return devices.logical_devices("GPU")


@pytest.mark.parametrize(
    ("ranks", "seconds", "algorithm", "bus"),
    [(1, 1.0, 8.0, 0.0), (2, 1.0, 8.0, 8.0), (4, 0.5, 16.0, 24.0), (8, 2.0, 4.0, 7.0)],
)
def test_bandwidths(ranks: int, seconds: float, algorithm: float, bus: float) -> None:
    row = Measurement("A", ranks, 8_000_000_000, 2_000_000_000, "float32", seconds, 0)
    assert row.algorithm_bandwidth == pytest.approx(algorithm)
    assert row.bus_bandwidth == pytest.approx(bus)


def test_a_line_of_the_table_fits_its_heading() -> None:
    row = Measurement("HierarchicalCopyAllReduce", 2, 1 << 30, 1 << 28, "float32", 0.123456, 7)
    assert str(row).split() == [
        "HierarchicalCopyAllReduce",
        "1073741824",
        "123456.0",
        "8.70",
        "8.70",
        "7",
    ]
    assert len(str(row)) == len(bandwidth.HEADING)


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 30), st.integers(2, 16))
def test_sizes(smallest: int, largest: int, factor: int) -> None:
    found = bandwidth.sizes(smallest, largest, factor)
    assert all(big == small * factor for small, big in itertools.pairwise(found))
    assert not found or found[0] == smallest
    assert all(size <= largest for size in found)
    assert smallest > largest or found[-1] * factor > largest


@pytest.mark.parametrize("collective", [ReductionToOneDevice(), HierarchicalCopyAllReduce()])
@pytest.mark.parametrize("count", [2, 3])
def test_rows_of_the_host(collective: CrossDeviceOps, count: int) -> None:
    rows = list(measure(gpus(count), collective, [1, 1024, 100_002], turns=2))
    assert [(row.nbytes, row.count) for row in rows] == [(4, 1), (1024, 256), (100_000, 25_000)]
    for row in rows:
        assert (row.collective, row.dtype) == (type(collective).__name__, "float32")
        assert row.ranks == count
        assert row.seconds > 0
        assert row.wrong == 0


def test_wrong_sums_are_counted_on_every_device() -> None:
    rows = list(measure(gpus(3), OffByOne(), [400, 800], turns=2))
    assert [row.wrong for row in rows] == [3, 3]


def test_logical_cpus() -> None:
    (cpu,) = devices.list_physical_devices("CPU")
    devices.set_logical_device_configuration(cpu, [LogicalDeviceConfiguration()] * 2)
    (row,) = measure(devices.logical_devices("CPU"), REFERENCE, [4096], turns=2)
    assert (row.ranks, row.wrong) == (2, 0)


def test_it_ends_where_memory_does() -> None:
    rows = list(measure(gpus(2, memory_limit=1), REFERENCE, [1024, 1 << 20, 2048], turns=2))
    assert [row.nbytes for row in rows] == [1024]


def test_all_that_was_taken_is_given_back() -> None:
    gpu, _ = used = gpus(2)
    list(measure(used, REFERENCE, [1024, 2048], turns=2))
    assert gpu.pool.current == 0


@pytest.mark.parametrize(
    ("free", "limit", "expected"),
    [
        (None, None, None),
        (16_000, None, 1000),  # Two devices' six arrays each, and four to compare them.
        (None, 3, (3 << 20) // 6),
        (16_000, 3, 1000),
        (1 << 40, 3, (3 << 20) // 6),
        (15, None, 0),
    ],
)
def test_the_largest_size(
    monkeypatch: pytest.MonkeyPatch, free: int | None, limit: float | None, expected: int | None
) -> None:
    monkeypatch.setattr(bandwidth, "available_host_memory", lambda: free)
    assert bandwidth.largest_size(gpus(2, memory_limit=limit)) == expected


def test_the_median_of_turns_of_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a millisecond, five a turn; one turn in three is slow."""

    class Scripted:
        ranks = 2

        def __init__(self) -> None:
            self.asked: list[int] = []
            self.now = 0.0

        def ask(self, times: int) -> None:
            self.asked.append(times)
            self.now += times * (0.001 if len(self.asked) % 3 else 0.5)

        def wait(self) -> None:
            pass

    scripted = Scripted()
    monkeypatch.setattr(bandwidth.time, "perf_counter", lambda: scripted.now)
    scripted.ask(1)
    assert bandwidth._seconds(scripted, 6, 0.005, lambda: None) == pytest.approx(0.001)
    assert scripted.asked[1:4] == [1, 1, 1]
    assert set(scripted.asked[4:]) == {5}


@pytest.mark.parametrize("simulated", [False, True])
def test_there_is_no_nccl_on_the_host(simulated: bool) -> None:
    used = gpus(2) if simulated else devices.logical_devices("CPU")
    assert bandwidth.why_no_nccl(used) == "NCCL sums only between GPUs that are not simulated."
    names = [type(each).__name__ for each in bandwidth.collectives(used)]
    assert names == ["ReductionToOneDevice", "HierarchicalCopyAllReduce"]


def test_one_card_has_nothing_to_connect(
    emulated_cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a turn there is long: the end of a wait does not show in it."""
    emulated_cuda(cards=1)
    seconds, asked = bandwidth._seconds, []

    def timed(measured: Any, turns: int, turn: float, after_timing: Any) -> float:
        asked.append(turn)
        return seconds(measured, turns, 1e-3, after_timing)

    monkeypatch.setattr(bandwidth, "_seconds", timed)
    (gpu,) = devices.list_physical_devices("GPU")
    devices.set_logical_device_configuration(gpu, [LogicalDeviceConfiguration(64)] * 2)
    used = devices.logical_devices("GPU")
    assert bandwidth.why_no_nccl(used) == "All devices are on one card."
    assert bandwidth.leaders(used) == [used[0]]
    (row,) = measure(used, REFERENCE, [4096], turns=1)
    assert (row.ranks, row.wrong) == (2, 0)
    assert asked == [50e-3]


def test_cards(emulated_cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual GPUs of one card are one rank."""
    monkeypatch.setenv("MIRRORED_NCCL_SELFTEST", "0")
    monkeypatch.setattr(bandwidth, "_WAITED_TURN", 5e-3)  # The emulated card is slow.
    emulated_cuda(cards=3)
    first, *_ = devices.list_physical_devices("GPU")
    devices.set_logical_device_configuration(first, [LogicalDeviceConfiguration(64)] * 2)
    used = devices.logical_devices("GPU")
    assert bandwidth.why_no_nccl(used) is None
    rows = [
        row
        for collective in bandwidth.collectives(used)
        for row in measure(used, collective, [1024, 40_000], turns=1)
    ]
    found = [(row.collective, row.ranks, row.nbytes, row.wrong) for row in rows]
    assert found == [
        (name, ranks, nbytes, 0)
        for name, ranks in (
            ("ReductionToOneDevice", 4),
            ("HierarchicalCopyAllReduce", 4),
            ("NcclAllReduce", 3),
        )
        for nbytes in (1024, 40_000)
    ]
    connection(bandwidth.leaders(used)).close()


def test_each_timing_is_told_of() -> None:
    told: list[None] = []
    two = gpus(2)
    counts = [
        len(told)
        for _ in measure(
            two, REFERENCE, [1024, 2048], turns=2, after_timing=lambda: told.append(None)
        )
    ]
    assert counts == [bandwidth.timings(2), 2 * bandwidth.timings(2)]
