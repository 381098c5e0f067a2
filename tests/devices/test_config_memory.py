"""The functions of ``mr.config`` that set memory growth, split devices and simulate GPUs."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import backends, devices
from mirrored.backends import Hardware, HostBackend
from mirrored.devices import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice

Simulate = Callable[..., list[LogicalDevice]]
CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
GPU = PhysicalDevice("/physical_device:GPU:0", "GPU")
ABSENT = PhysicalDevice("/physical_device:GPU:9", "GPU")
FIXED = "{} cannot be modified after being initialized"


def part(limit: Any = None, priority: Any = None) -> LogicalDeviceConfiguration:
    return LogicalDeviceConfiguration(limit, priority)


def gpus(count: int = 2) -> list[PhysicalDevice]:
    devices.set_simulated_gpus(count)
    return devices.list_physical_devices("GPU")


# Memory growth


@pytest.mark.behaviour("memory-growth")
def test_memory_growth_reads_back() -> None:
    first, second = gpus(2)
    assert devices.get_memory_growth(first) is None
    devices.set_memory_growth(first, True)
    devices.set_memory_growth(second, False)
    assert devices.get_memory_growth(first) is True
    assert devices.get_memory_growth(second) is False
    assert devices.get_memory_growth(CPU) is None


@pytest.mark.behaviour("memory-growth")
def test_memory_growth_of_what_is_no_gpu() -> None:
    with pytest.raises(
        ValueError, match="Cannot set memory growth on non-GPU and non-Pluggable devices"
    ):
        devices.set_memory_growth(CPU, True)


@pytest.mark.behaviour("memory-growth")
def test_memory_growth_of_a_split_device() -> None:
    gpus(1)
    devices.set_logical_device_configuration(GPU, [part(10)])
    with pytest.raises(
        ValueError, match="Cannot set memory growth on device when virtual devices configured"
    ):
        devices.set_memory_growth(GPU, True)
    assert devices.get_memory_growth(GPU) is None


@cases(
    ("function", "args"),
    [
        ("get_memory_growth", ()),
        ("set_memory_growth", (True,)),
        ("get_logical_device_configuration", ()),
        ("set_logical_device_configuration", ([part(1)],)),
        ("get_device_details", ()),
    ],
)
@cases("device", [ABSENT, "GPU:0", None])
def test_unknown_devices(function: str, args: tuple[Any, ...], device: Any) -> None:
    with pytest.raises(ValueError, match="Unrecognized device: ") as error:
        getattr(devices, function)(device, *args)
    assert f"Unrecognized device: {device!r}" in str(error.value)


@cases("enable", ["true", None, 2, 0.5])
def test_memory_growth_is_a_flag(enable: Any) -> None:
    gpus(1)
    with pytest.raises(ValueError, match="`enable` must be True or False"):
        devices.set_memory_growth(GPU, enable)
    assert devices.get_memory_growth(GPU) is None


@pytest.mark.behaviour("memory-growth", "set-again")
def test_memory_growth_after_initialisation() -> None:
    gpus(1)
    devices.set_memory_growth(GPU, True)
    devices.list_logical_devices()
    devices.set_memory_growth(GPU, True)  # What is already set.
    with pytest.raises(RuntimeError, match=FIXED.format("Physical devices")):
        devices.set_memory_growth(GPU, False)
    assert devices.get_memory_growth(GPU) is True


# A part of the memory


@pytest.mark.behaviour("memory-fraction")
def test_parts_of_the_memory_of_gpus() -> None:
    devices.set_simulated_gpus(3, memory_limit=100)
    first, second, third = devices.list_physical_devices("GPU")
    for gpu, fraction in ((first, 0.25), (second, 0.5), (second, 0), (third, 1)):
        devices.set_memory_fraction(gpu, fraction)
    there = (first, second, third, CPU)
    assert [devices.get_memory_fraction(each) for each in there] == [0.25, None, 1.0, None]
    limits = [each.pool.limit for each in devices.logical_devices("GPU")]
    assert limits == [25 << 20, 100 << 20, 100 << 20]
    devices.set_memory_fraction(first, 0.25)  # What is already set.
    with pytest.raises(RuntimeError, match=FIXED.format("Physical devices")):
        devices.set_memory_fraction(first, 0)


@pytest.mark.behaviour("memory-fraction")
@pytest.mark.parametrize("there", [1000, None])
def test_a_part_of_the_hosts_memory(monkeypatch: pytest.MonkeyPatch, there: int | None) -> None:
    monkeypatch.setattr(backends, "host_memory", lambda: there)
    (gpu,) = gpus(1)
    devices.set_memory_fraction(gpu, 0.25)
    if there is None:
        with pytest.raises(ValueError, match="the host does not say how much memory it has"):
            devices.logical_devices()
        devices.set_memory_fraction(gpu, 0)  # Nothing is frozen yet.
    (made,) = devices.logical_devices("GPU")
    assert made.pool.limit == (there and 250)


@pytest.mark.behaviour("memory-fraction")
@cases(
    ("device", "fraction", "message"),
    [
        (
            GPU,
            -0.1,
            "`fraction` must be a number from 0, for no limit, to 1. Received: fracti",
        ),
        (GPU, 1.5, "fraction=1.5. More than the card's memory (unified memory) is not"),
        (GPU, math.nan, "Received: fraction=nan"),
        (GPU, True, "Received: fraction=True"),
        (GPU, "0.5", "Received: fraction='0.5'"),
        (CPU, 0.5, "Cannot set a memory fraction on non-GPU devices"),
        (ABSENT, 0.5, "Unrecognized device: "),
    ],
)
def test_parts_of_the_memory_that_cannot_be(device: Any, fraction: Any, message: str) -> None:
    gpus(1)
    with pytest.raises(ValueError, match=re.escape(message)):
        devices.set_memory_fraction(device, fraction)
    assert devices.get_memory_fraction(GPU) is None


@pytest.mark.behaviour("memory-fraction")
def test_a_split_device_has_no_part_of_its_memory() -> None:
    first, second = gpus(2)
    devices.set_memory_fraction(first, 0.5)
    with pytest.raises(ValueError, match="Cannot split a device whose memory fraction was set"):
        devices.set_logical_device_configuration(first, [part(1)])
    devices.set_logical_device_configuration(second, [part(1)])
    with pytest.raises(ValueError, match="when virtual devices configured: each virtual device"):
        devices.set_memory_fraction(second, 0.5)
    gpus(3)
    assert devices.get_memory_fraction(first) is None  # It is another device now.


# Logical devices


@pytest.mark.behaviour("logical-configuration")
def test_logical_configuration_reads_back_as_a_copy() -> None:
    gpus(1)
    assert devices.get_logical_device_configuration(GPU) is None
    asked = [part(10), part(20)]
    devices.set_logical_device_configuration(GPU, asked)
    asked.clear()
    read = devices.get_logical_device_configuration(GPU)
    assert read == [part(10), part(20)]
    read.clear()
    assert devices.get_logical_device_configuration(GPU) == [part(10), part(20)]
    assert repr(part(10)) == (
        "LogicalDeviceConfiguration(memory_limit=10, experimental_priority=None)"
    )


@pytest.mark.behaviour("logical-configuration")
def test_a_split_gpu_has_its_limits() -> None:
    first, second = gpus(2)
    devices.set_logical_device_configuration(first, [part(1), part(2.5)])
    made = devices.logical_devices("GPU")
    assert [device.name[-5:] for device in made] == ["GPU:0", "GPU:1", "GPU:2"]
    assert [device.physical for device in made] == [first, first, second]
    assert [device.pool.limit for device in made] == [1 << 20, 5 << 19, None]


@pytest.mark.behaviour("logical-cpus")
@cases("limits", [(None, None), (16, None), (16, 32, 64)])
def test_a_cpu_splits_with_or_without_limits(limits: tuple[int | None, ...]) -> None:
    devices.set_logical_device_configuration(CPU, [part(limit) for limit in limits])
    made = devices.logical_devices("CPU")
    assert [device.index for device in made] == list(range(len(limits)))
    assert [device.pool.limit for device in made] == [limit and limit << 20 for limit in limits]


@pytest.mark.parametrize("limited", [True, False])
def test_logical_devices_share_the_card(limited: bool) -> None:
    devices.set_simulated_gpus(1, memory_limit=1 if limited else None)
    devices.set_logical_device_configuration(GPU, [part(1), part(1)])
    left, right = devices.logical_devices("GPU")
    assert left.pool.parent is right.pool.parent
    assert (left.pool.parent is not None) is limited


@pytest.mark.behaviour("logical-configuration")
@cases(
    ("parts", "message"),
    [
        ([part()], "Setting memory limit is required for GPU virtual devices"),
        ([part(1), part()], "Setting memory limit is required for GPU virtual devices"),
        ([part(1, 0), part(1)], "priority must be specified for all virtual devices"),
        ([part(1), part(1, -1)], "priority must be specified for all virtual devices"),
        ([part(0)], "`memory_limit` must be a number of MB above 0"),
        ([part(-1)], "Received: memory_limit=-1"),
        ([part("1")], "Received: memory_limit='1'"),
        ([part(True)], "Received: memory_limit=True"),
        ([part(math.nan)], "Received: memory_limit=nan"),
        ([part(math.inf)], "Received: memory_limit=inf"),
        ([], "must be a list of at least one LogicalDeviceConfiguration. Received: []"),
        (None, "must be a list of at least one LogicalDeviceConfiguration. Received: None"),
        ([None], "must be a list of at least one LogicalDeviceConfiguration. Received: [None]"),
        (part(1), "must be a list of at least one LogicalDeviceConfiguration"),
        ([(1, None)], "must be a list of at least one LogicalDeviceConfiguration"),
    ],
)
def test_unusable_logical_configurations(parts: Any, message: str) -> None:
    gpus(1)
    with pytest.raises(ValueError, match=r"must be|is required") as error:
        devices.set_logical_device_configuration(GPU, parts)
    assert message in str(error.value)
    assert devices.get_logical_device_configuration(GPU) is None


def open_host(_: int | None) -> HostBackend:
    return HostBackend()


@pytest.mark.behaviour("logical-configuration")
def test_other_types_of_hardware_do_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """No backend has such a type yet; one that brings it finds the seam."""
    found = (Hardware("CPU", 0, "host", open_host), Hardware("TPU", 0, "tensor", open_host))
    monkeypatch.setattr(backends, "probe", lambda *_: found)
    tpu = devices.list_physical_devices("TPU")[0]
    with pytest.raises(ValueError, match="Virtual devices are not supported for TPU"):
        devices.set_logical_device_configuration(tpu, [part(1)])
    assert [device.name for device in devices.logical_devices()] == [
        "/device:CPU:0",
        "/device:TPU:0",
    ]


@pytest.mark.behaviour("set-again", "logical-configuration")
def test_logical_configuration_after_initialisation() -> None:
    gpus(1)
    devices.set_logical_device_configuration(GPU, [part(1)])
    devices.list_logical_devices()
    devices.set_logical_device_configuration(GPU, [part(1)])  # What is already set.
    for device, parts in ((GPU, [part(1), part(1)]), (CPU, [part()])):
        with pytest.raises(RuntimeError, match=FIXED.format("Virtual devices")):
            devices.set_logical_device_configuration(device, parts)
    assert devices.get_logical_device_configuration(GPU) == [part(1)]
    assert devices.get_logical_device_configuration(CPU) is None


# Simulated GPUs


@cases(
    ("count", "limit", "nbytes"),
    [(1, None, None), (4, 2, 2 << 20), (np.int64(2), 0.5, 1 << 19), (0, None, None)],
)
def test_simulated_gpus(count: int, limit: float | None, nbytes: int | None) -> None:
    devices.set_simulated_gpus(count, memory_limit=limit)
    made = devices.logical_devices("GPU")
    assert len(made) == count
    assert {device.pool.limit for device in made} <= {nbytes}
    assert all(device.simulated for device in made)


@cases("count", [-1, 1.5, "4", None, True])
def test_a_count_that_is_none(count: Any) -> None:
    with pytest.raises(ValueError, match="`count` must be a whole number, 0 or more"):
        devices.set_simulated_gpus(count)
    assert devices.list_physical_devices("GPU") == []


def test_more_than_are_made() -> None:
    with pytest.raises(
        ValueError, match=r"At most 1024 simulated GPUs are possible\. Received: count=1025"
    ):
        devices.set_simulated_gpus(1025)


@cases("limit", [0, -1, math.nan, math.inf, "1", True])
def test_a_limit_that_is_none(limit: Any) -> None:
    with pytest.raises(ValueError, match="`memory_limit` must be a number of MB above 0"):
        devices.set_simulated_gpus(1, memory_limit=limit)
    assert devices.list_physical_devices("GPU") == []


def test_new_simulated_gpus_forget_what_was_set_for_the_old() -> None:
    there = gpus(2)
    devices.set_memory_growth(there[0], True)
    devices.set_visible_devices([there[1]], "GPU")
    devices.set_logical_device_configuration(there[1], [part(1)])
    devices.set_logical_device_configuration(CPU, [part(), part()])
    there = gpus(3)
    assert devices.get_visible_devices("GPU") == there
    assert devices.get_memory_growth(there[0]) is None
    assert devices.get_logical_device_configuration(there[1]) is None
    assert len(devices.logical_devices("CPU")) == 2


def test_the_same_simulated_gpus_again_are_silent(simulate: Simulate) -> None:
    simulate(2, memory_limit=8)
    devices.set_simulated_gpus(2, memory_limit=8)
    with pytest.raises(RuntimeError, match=FIXED.format("Physical devices")):
        devices.set_simulated_gpus(2, memory_limit=9)
    assert len(devices.list_logical_devices("GPU")) == 2
