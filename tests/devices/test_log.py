"""The placement log: off by default, one line an op when on."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from mirrored import devices
from mirrored.devices import LogicalDevice

Simulate = Callable[..., list[LogicalDevice]]


def test_it_is_off_until_asked_for(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    gpu = devices.get_device("GPU:1")
    caplog.clear()
    devices.log_placement("MatMul", gpu)
    devices.set_log_device_placement(True)
    devices.log_placement("AddV2", gpu)
    assert devices.get_log_device_placement() is True
    devices.set_log_device_placement(False)
    devices.log_placement("Mul", gpu)
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            "mirrored",
            logging.INFO,
            "Executing op AddV2 in device /job:localhost/replica:0/task:0/device:GPU:1",
        )
    ]


@pytest.mark.parametrize("enabled", ["yes", None, 2])
def test_it_is_a_flag(enabled: Any) -> None:
    with pytest.raises(ValueError, match="`enabled` must be True or False"):
        devices.set_log_device_placement(enabled)
    assert devices.get_log_device_placement() is False
