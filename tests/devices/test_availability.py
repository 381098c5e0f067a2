"""What scripts ask about GPUs: simulated ones count, and asking does not freeze anything."""

import dataclasses
from typing import Any

import pytest

import mirrored as mr
from mirrored.devices.configuration import configuration
from mirrored.errors import InvalidArgumentError


@pytest.mark.parametrize(("count", "name"), [(0, ""), (1, "/device:GPU:0"), (3, "/device:GPU:0")])
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
    assert not configuration.initialised
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
    hardware = dict(configuration.hardware())
    (gpu,) = mr.config.list_physical_devices("GPU")
    details = {} if capability is None else {"compute_capability": capability}
    hardware[gpu] = dataclasses.replace(hardware[gpu], simulated=False, details=details)
    monkeypatch.setattr(configuration, "hardware", lambda: hardware)
    assert mr.test.is_gpu_available(True, least) is available


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cuda_only": "yes"}, "`cuda_only` must be True or False. Received: 'yes'"),
        ({"min_cuda_compute_capability": 7.0}, r"is a pair of integers.* Received: 7\.0"),
        ({"min_cuda_compute_capability": (7, 0, 1)}, "is a pair of integers"),
        ({"min_cuda_compute_capability": (7, "0")}, "is a pair of integers"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        mr.test.is_gpu_available(**arguments)
