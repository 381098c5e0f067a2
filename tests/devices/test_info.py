"""What scripts ask about devices: GPUs, simulated ones among them, and memory in use."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices
from mirrored.devices import LogicalDevice
from mirrored.devices.device_registry import registry
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[LogicalDevice]]
FLOAT = np.dtype("float32")


@cases(("count", "name"), [(0, ""), (1, "/device:GPU:0"), (3, "/device:GPU:0")])
def test_simulated_gpus_count(count: int, name: str) -> None:
    if count:
        mr.config.experimental.set_simulated_gpus(count)
    assert mr.test.is_gpu_available() is bool(count)
    assert mr.test.is_gpu_available(cuda_only=True) is False
    assert mr.test.gpu_device_name() == name
    assert mr.test.is_built_with_cuda() is True


def test_hidden_gpus_do_not_count() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    mr.config.set_visible_devices([], "GPU")
    assert not mr.test.is_gpu_available()
    assert mr.test.gpu_device_name() == ""


def test_asking_initialises_nothing() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    mr.test.is_gpu_available()
    mr.test.gpu_device_name()
    assert not registry.initialised
    mr.config.set_visible_devices([], "GPU")


def test_the_name_is_that_of_a_device() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    with mr.device(mr.test.gpu_device_name()):
        assert mr.constant(1.0).device.endswith("/device:GPU:0")


@pytest.mark.parametrize(
    ("capability", "least", "available"),
    [
        ((8, 0), None, True),
        ((8, 0), (8, 0), True),
        ((8, 0), (7, 5), True),
        ((8, 0), (8, 6), False),
        ((8, 0), [9, 0], False),
        (None, (0, 0), True),
        (None, (3, 0), False),
    ],
)
def test_compute_capability(
    monkeypatch: pytest.MonkeyPatch, capability: Any, least: Any, available: bool
) -> None:
    """Real GPUs have one; a simulated GPU, made to look like one, stands for them."""
    mr.config.experimental.set_simulated_gpus(1)
    hardware = dict(registry.hardware())
    (gpu,) = mr.config.list_physical_devices("GPU")
    details = {} if capability is None else {"compute_capability": capability}
    hardware[gpu] = dataclasses.replace(hardware[gpu], simulated=False, details=details)
    monkeypatch.setattr(registry, "hardware", lambda: hardware)
    assert mr.test.is_gpu_available(True, least) is available


@cases(
    ("arguments", "message"),
    [
        ({"cuda_only": "yes"}, "`cuda_only` must be True or False. Received: 'yes'"),
        ({"min_cuda_compute_capability": 7.0}, r"must be a pair of integers.* Received: 7\.0"),
        ({"min_cuda_compute_capability": (7, 0, 1)}, "must be a pair of integers"),
        ({"min_cuda_compute_capability": (7, "0")}, "must be a pair of integers"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        mr.test.is_gpu_available(**arguments)


# Memory in use and at its peak, by logical device.


@pytest.mark.behaviour("memory-info")
def test_current_and_peak(simulate: Simulate) -> None:
    simulate(2)
    gpu = devices.get_device("GPU:1")
    kept = gpu.allocate((10,), FLOAT)
    gpu.allocate((5,), FLOAT)
    assert devices.get_memory_info("GPU:1") == {"current": 40, "peak": 60}
    assert devices.get_memory_info("GPU:0") == {"current": 0, "peak": 0}
    devices.reset_memory_stats("GPU:1")
    assert devices.get_memory_info("GPU:1") == {"current": 40, "peak": 40}
    del kept
    assert devices.get_memory_info("GPU:1") == {"current": 0, "peak": 40}


@pytest.mark.behaviour("memory-info")
@cases(
    "name",
    [
        "GPU:0",
        "/gpu:0",
        "/device:GPU:0",
        "/job:localhost/replica:0/task:0/device:GPU:0",
        LogicalDevice("/device:GPU:0", "GPU"),
        "CPU:0",
    ],
)
def test_names(simulate: Simulate, name: str | LogicalDevice) -> None:
    simulate(1)
    kept = devices.get_device(name).allocate((2,), FLOAT)
    assert devices.get_memory_info(name)["current"] == kept.nbytes == 8


@cases("function", [devices.get_memory_info, devices.reset_memory_stats])
@cases("name", ["GPU", "GPU:*", "", "/foo:0", "/task:0", "GPU:x", 3, None])
def test_names_that_do_not_say_which(function: Callable[[Any], Any], name: Any) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        function(name)
    assert str(error.value) == (
        f"Failed parsing device name: {name!r}. Note a valid device string should at least "
        'contain a device type and a device index, like "GPU:0".'
    )


def test_a_device_that_is_not_there(simulate: Simulate) -> None:
    simulate(1)
    with pytest.raises(ValueError, match="No matching devices found for 'GPU:7'") as error:
        devices.get_memory_info("GPU:7")
    assert str(error.value).endswith("device:GPU:0].")
