"""Devices as things that compute: identity, and what happens when their memory is full."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices
from mirrored.devices import Device, LogicalDevice, LogicalDeviceConfiguration
from mirrored.devices.logical_device import format_bytes, in_order
from mirrored.errors import DevicesResetError, ResourceExhaustedError

FLOAT = np.dtype("float32")
MEGABYTE = 1 << 20

Simulate = Callable[..., list[LogicalDevice]]


def test_attributes(simulate: Simulate) -> None:
    simulate(2, memory_limit=3)
    cpu, _, gpu = devices.logical_devices()
    assert (gpu.name, gpu.type, gpu.index) == ("/device:GPU:1", "GPU", 1)
    assert gpu.full_name == "/job:localhost/replica:0/task:0/device:GPU:1"
    assert gpu.physical == devices.list_physical_devices("GPU")[1]
    assert gpu.simulated
    assert gpu.pool.limit == 3 * MEGABYTE
    assert repr(gpu) == "<Device /job:localhost/replica:0/task:0/device:GPU:1, simulated>"
    assert not cpu.simulated
    assert cpu.pool.limit is None
    assert repr(cpu) == "<Device /job:localhost/replica:0/task:0/device:CPU:0>"


def test_devices_compare_by_identity(simulate: Simulate) -> None:
    simulate(2)
    first, second = devices.logical_devices("GPU")
    assert first is devices.get_device("GPU:0")
    assert first != second
    assert {first: "first"}[devices.get_device("/gpu:0")] == "first"


def test_out_of_memory_says_everything(simulate: Simulate) -> None:
    simulate(1, memory_limit=16)
    gpu = devices.get_device("GPU:0")
    kept = gpu.allocate((3, 1 << 20), FLOAT)
    with pytest.raises(ResourceExhaustedError) as error:
        gpu.allocate((1024, 2048), FLOAT)
    assert str(error.value) == (
        "OOM when allocating tensor with shape [1024,2048] and type float32 on "
        "/job:localhost/replica:0/task:0/device:GPU:0: 8.0 MB (8388608 bytes) asked for, "
        "12.0 MB (12582912 bytes) in use, limit 16.0 MB (16777216 bytes). "
        "Use a smaller batch or model, or raise the limit."
    )
    assert isinstance(error.value, MemoryError)
    assert isinstance(error.value, RuntimeError)
    del kept
    assert gpu.allocate((1024, 2048), FLOAT).nbytes == 8 * MEGABYTE


def test_out_of_memory_of_a_shared_card_names_the_card() -> None:
    devices.set_simulated_gpus(1, memory_limit=4)
    gpu = devices.list_physical_devices("GPU")[0]
    part = LogicalDeviceConfiguration(memory_limit=3)
    devices.set_logical_device_configuration(gpu, [part, part])
    left, right = devices.logical_devices("GPU")
    kept = left.allocate((3 * MEGABYTE // 4,), FLOAT)
    with pytest.raises(ResourceExhaustedError) as error:
        right.allocate((2 * MEGABYTE // 4,), FLOAT)
    assert str(error.value) == (
        "OOM when allocating tensor with shape [524288] and type float32 on "
        "/job:localhost/replica:0/task:0/device:GPU:1: 2.0 MB (2097152 bytes) asked for, 0 bytes "
        "in use. The limit of /physical_device:GPU:0, 4.0 MB (4194304 bytes), is shared by its "
        "logical devices, which use 3.0 MB (3145728 bytes). Use a smaller batch or model, or set "
        "a higher limit for the physical device."
    )
    assert right.pool.current == 0
    del kept
    assert right.allocate((2 * MEGABYTE // 4,), FLOAT).nbytes == 2 * MEGABYTE


def test_out_of_memory_of_the_machine_itself() -> None:
    cpu = devices.get_device("CPU:0")
    with pytest.raises(ResourceExhaustedError, match="the host has no more memory"):
        cpu.allocate((1 << 40, 1 << 40), FLOAT)
    assert cpu.pool.current == 0


def test_the_garbage_collector_runs_once_before_it_fails(simulate: Simulate) -> None:
    simulate(1, memory_limit=1)
    gpu = devices.get_device("GPU:0")
    gc.disable()
    try:
        cycle: list[Any] = [gpu.allocate((MEGABYTE // 4,), FLOAT)]
        cycle.append(cycle)
        del cycle
        assert gpu.pool.current == MEGABYTE
        again = gpu.allocate((MEGABYTE // 4,), FLOAT)
    finally:
        gc.enable()
    assert again.nbytes == gpu.pool.current == MEGABYTE


def test_nothing_of_a_failed_call_stays_allocated(simulate: Simulate) -> None:
    """Not even with the garbage collector off: an error makes no reference cycle."""
    simulate(1, memory_limit=1)
    gpu = devices.get_device("GPU:0")
    seen: list[weakref.ref[Any]] = []

    def fail() -> None:
        storage = gpu.allocate((1000,), FLOAT)
        seen.append(weakref.ref(storage))
        gpu.allocate((MEGABYTE,), FLOAT)

    gc.disable()
    try:
        with pytest.raises(ResourceExhaustedError) as error:
            fail()
        assert seen[0]() is not None, "the traceback holds the frame, and the frame the storage"
        del error
        assert seen[0]() is None
        assert gpu.pool.current == 0
    finally:
        gc.enable()


def test_a_stale_device_is_refused(simulate: Simulate) -> None:
    simulate(1)
    stale = devices.get_device("GPU:0")
    devices.reset_devices()
    simulate(1)
    with pytest.raises(DevicesResetError, match=r"no longer exists.*`simulated_gpus`"):
        devices.get_device(stale)
    assert isinstance(devices.get_device("GPU:0"), Device)


@cases(
    ("nbytes", "expected"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KB (1024 bytes)"),
        (1_500_000, "1.4 MB (1500000 bytes)"),
        (3 << 30, "3.0 GB (3221225472 bytes)"),
    ],
)
def test_format_bytes(nbytes: int, expected: str) -> None:
    assert format_bytes(nbytes) == expected


def test_devices_in_order(simulate: Simulate) -> None:
    simulate(11)
    logical = devices.logical_devices()
    assert in_order(set(logical)) == list(logical)
    assert [device.short_name for device in in_order(logical)][-2:] == ["GPU:9", "GPU:10"]


def test_an_error_that_is_kept_keeps_no_memory() -> None:
    """As a notebook does, to which a call's tensors would be lost for good."""

    def fail() -> None:
        tensor = mr.zeros((3, 1 << 18))
        mr.concat([tensor, tensor], 0)

    mr.config.experimental.set_simulated_gpus(1, memory_limit=4)
    with pytest.raises(ResourceExhaustedError) as caught:
        fail()
    error = caught.value.with_traceback(None)
    del caught
    assert error.__context__ is None
    assert mr.config.experimental.get_memory_info("GPU:0")["current"] == 0
