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


def test_ops_that_are_placed_in_a_function(
    simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    simulate(1)
    gpu = devices.get_device("GPU:0")
    devices.set_log_device_placement(True)
    caplog.clear()
    with devices.placed_as(lambda name: None if name == "Mul" else f"inner/{name}"):
        devices.log_placement("MatMul", gpu)
        devices.log_placement("Mul", gpu)  # One that was told of before.
        with devices.placed_as(None):
            devices.log_placement("Fill", gpu)
        devices.log_placement("AddV2", gpu)
    with pytest.raises(KeyError), devices.placed_as(lambda name: name):
        raise KeyError
    devices.log_placement("Sub", gpu)
    full = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert caplog.messages == [
        f"inner/MatMul: (MatMul): {full}",
        f"Executing op Fill in device {full}",
        f"inner/AddV2: (AddV2): {full}",
        f"Executing op Sub in device {full}",
    ]


def test_names_are_not_asked_for_while_the_log_is_off() -> None:
    with devices.placed_as(lambda name: pytest.fail(f"asked for {name}")):
        devices.log_placement("MatMul", devices.get_device("CPU:0"))
