"""Memory in use and at its peak, by logical device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mirrored import devices
from mirrored.devices import LogicalDevice
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[LogicalDevice]]
FLOAT = np.dtype("float32")


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("function", [devices.get_memory_info, devices.reset_memory_stats])
@pytest.mark.parametrize("name", ["GPU", "GPU:*", "", "/foo:0", "/task:0", "GPU:x", 3, None])
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
