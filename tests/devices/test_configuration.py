"""The functions of ``mr.config`` that list and choose devices, and that they freeze."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices
from mirrored.devices import LogicalDevice, PhysicalDevice
from mirrored.errors import InvalidArgumentError

CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
GPU = PhysicalDevice("/physical_device:GPU:0", "GPU")
ABSENT = PhysicalDevice("/physical_device:GPU:9", "GPU")
FIXED = "{} cannot be modified after being initialized"


def gpus(count: int = 2) -> list[PhysicalDevice]:
    devices.set_simulated_gpus(count)
    return devices.list_physical_devices("GPU")


# Listings


def test_a_machine_without_gpus_lists_none() -> None:
    assert devices.list_physical_devices() == [CPU]
    assert devices.list_physical_devices("GPU") == []
    assert devices.list_logical_devices() == [LogicalDevice("/device:CPU:0", "CPU")]
    assert devices.list_logical_devices("GPU") == []


@pytest.mark.behaviour("physical-devices")
def test_listing_physical_devices_does_not_initialise() -> None:
    gpus(2)
    devices.get_visible_devices()
    devices.set_simulated_gpus(3)
    assert len(devices.list_physical_devices("GPU")) == 3


@pytest.mark.behaviour("logical-devices")
def test_listing_logical_devices_freezes() -> None:
    gpus(2)
    assert devices.list_logical_devices("GPU") == [
        LogicalDevice("/device:GPU:0", "GPU"),
        LogicalDevice("/device:GPU:1", "GPU"),
    ]
    with pytest.raises(RuntimeError, match=FIXED.format("Physical devices")):
        devices.set_simulated_gpus(3)


def test_a_listing_is_a_copy() -> None:
    devices.list_physical_devices().clear()
    devices.get_visible_devices().clear()
    devices.list_logical_devices().clear()
    assert devices.list_physical_devices() == devices.get_visible_devices() == [CPU]
    assert len(devices.list_logical_devices()) == 1


# Visible devices


@pytest.mark.behaviour("visible-devices")
@cases(
    ("chosen", "device_type", "visible"),
    [
        ([1], "GPU", ["CPU:0", "GPU:1"]),
        (1, "GPU", ["CPU:0", "GPU:1"]),
        ([2, 1], "GPU", ["CPU:0", "GPU:2", "GPU:1"]),
        ([], "GPU", ["CPU:0"]),
        ((0, 2), "GPU", ["CPU:0", "GPU:0", "GPU:2"]),
        ([CPU, 1], None, ["CPU:0", "GPU:1"]),
        (CPU, None, ["CPU:0"]),
        ([], None, []),
    ],
)
def test_set_visible_devices(chosen: Any, device_type: str | None, visible: list[str]) -> None:
    there = gpus(3)

    def device(which: Any) -> PhysicalDevice:
        return there[which] if isinstance(which, int) else which

    if isinstance(chosen, (list, tuple)) and not isinstance(chosen, PhysicalDevice):
        devices.set_visible_devices(type(chosen)(map(device, chosen)), device_type)
    else:
        devices.set_visible_devices(device(chosen), device_type)
    names = [physical.name for physical in devices.get_visible_devices()]
    assert names == [f"/physical_device:{name}" for name in visible]


def test_logical_devices_are_made_of_visible_ones_in_the_machine_s_order() -> None:
    there = gpus(4)
    devices.set_visible_devices([there[3], there[1]], "GPU")
    assert devices.get_visible_devices("GPU") == [there[3], there[1]]
    made = devices.logical_devices("GPU")
    assert [device.name for device in made] == ["/device:GPU:0", "/device:GPU:1"]
    assert [device.physical for device in made] == [there[1], there[3]]


@cases("chosen", [ABSENT, "GPU:0", 0, None, np.zeros(2), ("a", "b"), [[GPU]]])
def test_unknown_visible_devices(chosen: Any) -> None:
    gpus(1)
    with pytest.raises(ValueError, match="Unrecognized device: "):
        devices.set_visible_devices(chosen)
    assert devices.get_visible_devices() == [CPU, GPU]


@pytest.mark.behaviour("visible-devices")
def test_unknown_device_is_shown_with_those_there_are() -> None:
    gpus(1)
    with pytest.raises(InvalidArgumentError) as error:
        devices.set_visible_devices([GPU, ABSENT])
    assert str(error.value) == (
        f"Unrecognized device: {ABSENT!r}. Use devices from list_physical_devices(): "
        "[/physical_device:CPU:0, /physical_device:GPU:0]"
    )


@pytest.mark.behaviour("visible-devices")
def test_visible_devices_of_the_wrong_type() -> None:
    gpus(1)
    with pytest.raises(ValueError, match="Unrecognized device: PhysicalDevice") as error:
        devices.set_visible_devices([CPU], "GPU")
    assert f"Unrecognized device: {CPU!r}" in str(error.value)


def test_duplicate_visible_devices() -> None:
    gpus(1)
    with pytest.raises(ValueError, match="No duplicates allowed in `devices` argument"):
        devices.set_visible_devices([GPU, GPU], "GPU")


@pytest.mark.behaviour("visible-devices-late", "set-again")
def test_visible_devices_after_initialisation() -> None:
    there = gpus(2)
    devices.set_visible_devices(there[:1], "GPU")
    devices.list_logical_devices()
    devices.set_visible_devices(there[:1], "GPU")  # What is already set.
    devices.set_visible_devices([CPU, there[0]])
    with pytest.raises(RuntimeError, match=FIXED.format("Visible devices")):
        devices.set_visible_devices(there, "GPU")
    assert devices.get_visible_devices("GPU") == there[:1]


def test_a_process_without_a_cpu() -> None:
    there = gpus(1)
    devices.set_visible_devices(there)
    with pytest.raises(ValueError, match="No CPU devices are available in this process"):
        devices.list_logical_devices()
    devices.set_visible_devices([CPU, *there])
    assert len(devices.list_logical_devices()) == 2


# Details and policy


@pytest.mark.behaviour("device-details")
def test_details() -> None:
    gpus(1)
    assert devices.get_device_details(CPU) == {}
    details = devices.get_device_details(GPU)
    assert details == {"device_name": "simulated GPU (host memory)", "simulated": True}
    details.clear()
    assert devices.get_device_details(GPU)["simulated"] is True


@pytest.mark.behaviour("device-policy")
@cases(
    ("policy", "read"),
    [
        (None, "silent"),
        ("silent", "silent"),
        ("warn", "warn"),
        ("explicit", "explicit"),
        ("silent_for_int32", "silent_for_int32"),
    ],
)
def test_device_policies(policy: str | None, read: str) -> None:
    devices.set_device_policy("warn")
    devices.set_device_policy(policy)
    assert devices.get_device_policy() == read


@pytest.mark.behaviour("device-policy")
@cases("policy", ["x", "", 1, ["silent"]])
def test_unknown_device_policy(policy: Any) -> None:
    with pytest.raises(ValueError, match="Invalid argument `device_policy`: ") as error:
        devices.set_device_policy(policy)
    assert f"Invalid argument `device_policy`: {policy!r}." in str(error.value)
    assert devices.get_device_policy() == "silent"
