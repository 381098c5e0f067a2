"""Devices that cannot be: an error that names them, and the strategy works on.

What is configured too late changes nothing either.
"""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError

DEVICES: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown": (["GPU:0", "GPU:7"], InvalidArgumentError, "/device:GPU:1"),
    "unknown type": (["TPU:0"], InvalidArgumentError, "/device:GPU:1"),
    "duplicate": (["GPU:0", "/gpu:0"], ValueError, "No duplicates allowed in `devices` argument"),
    "attribute": (
        ["/foo:1"],
        InvalidArgumentError,
        "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:1'.",
    ),
    "number": (["GPU:x"], ValueError, "invalid literal for int() with base 10: 'x'"),
    "two types": (
        ["/CPU:0/GPU:1"],
        InvalidArgumentError,
        "Multiple device types are not allowed while parsing the device spec: /CPU:0/GPU:1.",
    ),
}


@cases(("names", "error", "message"), DEVICES.values(), ids=DEVICES)
def test_devices(
    names: Any, error: type[Exception], message: str, simulate: Callable[..., Any]
) -> None:
    simulate(2)
    with pytest.raises(error) as caught:
        mr.MirroredStrategy(names)
    assert type(caught.value) is error
    assert message in str(caught.value)
    assert not mr.distribute.has_strategy()
    assert mr.MirroredStrategy(["GPU:0", "/gpu:1"]).num_replicas_in_sync == 2


def test_a_malformed_device_scope(simulate: Callable[..., Any]) -> None:
    simulate(2)
    with pytest.raises(ValueError, match="Unknown attribute 'foo'"), mr.device("/foo:1"):
        pass
    with mr.device("GPU:1"):
        assert mr.constant(1.0).device.endswith("GPU:1")
    assert mr.constant(1.0).device.endswith("GPU:0")


CONFIGURATION: dict[str, tuple[Callable[[], Any], str]] = {
    "visible devices": (
        lambda: mr.config.set_visible_devices([], "GPU"),
        "Visible devices cannot be modified after being initialized",
    ),
    "memory growth": (
        lambda: mr.config.experimental.set_memory_growth(
            mr.config.list_physical_devices("GPU")[0], True
        ),
        "Physical devices cannot be modified after being initialized",
    ),
    "memory fraction": (
        lambda: mr.config.experimental.set_memory_fraction(
            mr.config.list_physical_devices("GPU")[0], 0.5
        ),
        "Physical devices cannot be modified after being initialized",
    ),
    "virtual devices": (
        lambda: mr.config.set_logical_device_configuration(
            mr.config.list_physical_devices("GPU")[0],
            [mr.config.LogicalDeviceConfiguration(memory_limit=1)] * 2,
        ),
        "Virtual devices cannot be modified after being initialized",
    ),
    "simulated devices": (
        lambda: mr.config.experimental.set_simulated_gpus(5),
        "first tensor, strategy or list_logical_devices(), or after "
        "mr.config.experimental.reset_devices().",
    ),
}


@pytest.mark.parametrize(("act", "message"), CONFIGURATION.values(), ids=CONFIGURATION)
def test_configuration_after_initialisation(
    act: Callable[[], Any],
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
) -> None:
    before = mr.config.list_logical_devices()
    check_refused(make_model(strategy), lambda model: act(), RuntimeError, message)
    assert mr.config.list_logical_devices() == before
