"""Where an op runs: by default, inside scopes, and where the device asked for cannot be had."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases

from mirrored import devices
from mirrored.devices import DeviceSpec, LogicalDevice, LogicalDeviceConfiguration
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[LogicalDevice]]
BOTH = ("GPU", "CPU")
CPU_ONLY = ("CPU",)
FULL = "/job:localhost/replica:0/task:0/device:"


def placed(types: tuple[str, ...] = BOTH) -> str:
    return devices.place("MatMul", types).name.removeprefix("/device:")


# The default


@pytest.mark.behaviour("default-placement")
@cases(
    ("gpus", "types", "expected"),
    [
        (2, BOTH, "GPU:0"),
        (2, ("CPU", "GPU"), "GPU:0"),
        (2, CPU_ONLY, "CPU:0"),
        (0, BOTH, "CPU:0"),
        (2, ("TPU", "CPU"), "CPU:0"),
    ],
)
def test_default(gpus: int, types: tuple[str, ...], expected: str) -> None:
    devices.set_simulated_gpus(gpus)
    assert placed(types) == expected


def test_placing_initialises() -> None:
    placed()
    with pytest.raises(RuntimeError, match="after being initialized"):
        devices.set_simulated_gpus(1)


def test_an_op_that_no_device_can_run() -> None:
    with pytest.raises(InvalidArgumentError, match="No supported device found") as error:
        placed(("GPU",))
    assert f"Supported device types [GPU]. All available devices [{FULL}CPU:0]" in str(error.value)
    assert "[Op:MatMul]" in str(error.value)


# Scopes


@cases(
    ("name", "expected"),
    [
        ("GPU:1", "GPU:1"),
        ("/gpu:1", "GPU:1"),
        (f"{FULL}GPU:1", "GPU:1"),
        ("GPU", "GPU:0"),
        ("GPU:*", "GPU:0"),
        ("CPU", "CPU:0"),
        ("/device:CPU:0", "CPU:0"),
        ("", "GPU:0"),
        ("/job:localhost", "GPU:0"),
        (None, "GPU:0"),
        (LogicalDevice("/device:GPU:1", "GPU"), "GPU:1"),
        (DeviceSpec(device_type="GPU", device_index=1), "GPU:1"),
        (DeviceSpec(device_index=1), "GPU:1"),
    ],
)
@cases("soft", [True, False])
def test_scope(simulate: Simulate, soft: bool, name: Any, expected: str) -> None:
    simulate(2)
    devices.set_soft_device_placement(soft)
    with devices.device(name):
        assert placed() == expected
    assert placed() == "GPU:0"


def test_scope_of_a_device_itself(simulate: Simulate) -> None:
    simulate(2)
    with devices.device(devices.get_device("GPU:1")):
        assert placed() == "GPU:1"


@pytest.mark.behaviour("inner-device")
def test_an_inner_scope_overrides_what_it_names(simulate: Simulate) -> None:
    """As in TensorFlow, where "CPU" inside "GPU:1" is "CPU:1"."""
    simulate(3)
    with devices.device("GPU:1"):
        with devices.device("GPU"):
            assert placed() == "GPU:1"
            with devices.device(None):
                assert placed() == "GPU:0"
                assert devices.current_device_spec() is None
                with devices.device("GPU"):
                    assert placed() == "GPU:0"
            assert placed() == "GPU:1"
        with devices.device("CPU"):
            assert devices.current_device_spec() == DeviceSpec(device_type="CPU", device_index=1)
        with devices.device("CPU:0"):
            assert placed() == "CPU:0"
        assert devices.current_device_spec() == DeviceSpec(device_type="GPU", device_index=1)
        with devices.device("/task:0"):
            assert placed() == "GPU:1"
        assert placed() == "GPU:1"
    assert devices.current_device_spec() is None


def test_a_scope_ends_with_an_exception(simulate: Simulate) -> None:
    simulate(2)
    with pytest.raises(ZeroDivisionError), devices.device("GPU:1"):
        raise ZeroDivisionError
    assert placed() == "GPU:0"


def test_a_scope_may_be_entered_again_and_in_other_threads(simulate: Simulate) -> None:
    simulate(2)
    scope = devices.device("GPU:1")
    inside, leave = threading.Event(), threading.Event()
    seen: list[str] = []

    def elsewhere() -> None:
        seen.append(placed())  # A new thread starts outside any scope.
        with scope:
            inside.set()
            leave.wait(timeout=60)
            seen.append(placed())
        seen.append(placed())

    thread = threading.Thread(target=elsewhere)
    with scope:
        thread.start()
        assert inside.wait(timeout=60)
        with scope:
            assert placed() == "GPU:1"
        assert placed() == "GPU:1"
    leave.set()
    thread.join(timeout=60)
    assert placed() == "GPU:0"
    assert seen == ["GPU:0", "GPU:1", "GPU:0"]


def test_naming_a_device_does_not_initialise() -> None:
    with devices.device("GPU:1"):
        devices.set_simulated_gpus(2)
        assert placed() == "GPU:1"


@cases(
    ("name", "message"),
    [
        (3, "Expecting a string device name. Got <class 'int'>(3)"),
        (b"/CPU:0", "Expecting a string device name. Got <class 'bytes'>(b'/CPU:0')"),
        (["GPU:0"], "Expecting a string device name. Got <class 'list'>(['GPU:0'])"),
        ("/foo:1", "Unknown attribute 'foo'"),
        ("GPU:x", "invalid literal for int() with base 10: 'x'"),
        ("GPU:-1", "Malformed device specification 'GPU:-1'"),
    ],
)
@cases("function", [devices.device, devices.get_device])
def test_malformed_names(function: Callable[[Any], Any], name: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        function(name)
    assert message in str(error.value)
    assert devices.current_device_spec() is None
    assert placed() == "CPU:0"


# Devices that cannot be had


@pytest.mark.behaviour("soft-device-placement", "absent-device", "absent-kernel")
@cases(
    ("name", "types", "expected"),
    [
        ("GPU:2", BOTH, "GPU:0"),
        ("CPU:5", BOTH, "GPU:0"),
        ("TPU:0", BOTH, "GPU:0"),
        ("/device:foo:0", CPU_ONLY, "CPU:0"),
        ("GPU:2", CPU_ONLY, "CPU:0"),
        ("GPU:1", CPU_ONLY, "CPU:0"),
        ("GPU", CPU_ONLY, "CPU:0"),
    ],
)
def test_soft_placement(
    simulate: Simulate, name: str, types: tuple[str, ...], expected: str
) -> None:
    simulate(2)
    assert devices.get_soft_device_placement()
    with devices.device(name):
        assert placed(types) == expected


@pytest.mark.behaviour("absent-device")
@cases("name", ["GPU:2", "CPU:5", "TPU:0"])
@cases("types", [BOTH, CPU_ONLY])
def test_a_device_that_does_not_exist(
    simulate: Simulate, name: str, types: tuple[str, ...]
) -> None:
    simulate(1)
    devices.set_soft_device_placement(False)
    with pytest.raises(RuntimeError) as error, devices.device(name):
        placed(types)
    assert str(error.value) == (
        f"{FULL}{name} unknown device. All available devices [{FULL}CPU:0, {FULL}GPU:0]. Name one "
        "of these, or call set_soft_device_placement(True). [Op:MatMul]"
    )
    assert isinstance(error.value, InvalidArgumentError)
    assert placed(types) == ("GPU:0" if "GPU" in types else "CPU:0")


@cases("soft", [True, False])
@cases(
    ("name", "full_name"),
    [
        ("/job:worker/CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"),
        ("/task:1", "/job:localhost/replica:0/task:1"),
        ("/replica:2/GPU", "/job:localhost/replica:2/task:0/device:GPU:0"),
    ],
)
def test_another_process_is_unknown_either_way(soft: bool, name: str, full_name: str) -> None:
    devices.set_soft_device_placement(soft)
    with pytest.raises(InvalidArgumentError) as error, devices.device(name):
        placed()
    assert str(error.value) == (
        f"{full_name} unknown device. All available devices [{FULL}CPU:0]. Name one of these. "
        "[Op:MatMul]"
    )


@pytest.mark.behaviour("absent-kernel")
@pytest.mark.parametrize(("name", "index"), [("GPU:1", 1), ("GPU", 0)])
def test_an_op_without_a_kernel_there(simulate: Simulate, name: str, index: int) -> None:
    simulate(2)
    devices.set_soft_device_placement(False)
    with pytest.raises(InvalidArgumentError) as error, devices.device(name):
        devices.place("PyFunc", CPU_ONLY)
    assert str(error.value) == (
        f"Could not satisfy device specification '{FULL}GPU:{index}'. enable_soft_placement=0. "
        f"Supported device types [CPU]. All available devices [{FULL}CPU:0, {FULL}GPU:0, "
        f"{FULL}GPU:1]. Place the op on a supported type, or call "
        "set_soft_device_placement(True). [Op:PyFunc]"
    )


@pytest.mark.behaviour("soft-device-placement")
def test_soft_placement_changes_at_any_time(simulate: Simulate) -> None:
    simulate(1)
    with devices.device("GPU:3"):
        assert placed() == "GPU:0"
        devices.set_soft_device_placement(False)
        with pytest.raises(RuntimeError, match="unknown device"):
            placed()
        devices.set_soft_device_placement(True)
        assert placed() == "GPU:0"


@cases("enabled", ["yes", None, 2])
def test_soft_placement_is_a_flag(enabled: Any) -> None:
    with pytest.raises(ValueError, match="`enabled` must be True or False"):
        devices.set_soft_device_placement(enabled)
    assert devices.get_soft_device_placement() is True


def test_answers_are_those_of_the_configuration(simulate: Simulate) -> None:
    simulate(1)
    scope = devices.device("GPU:0")
    with scope:
        old = devices.place("MatMul", BOTH)
    devices.reset_devices()
    simulate(1)
    with scope:
        new = devices.place("MatMul", BOTH)
    assert new is devices.get_device("GPU:0")
    assert new is not old


# Devices by name


@cases(
    ("name", "expected"),
    [
        ("GPU:1", "/device:GPU:1"),
        ("/gpu:1", "/device:GPU:1"),
        (f"{FULL}CPU:1", "/device:CPU:1"),
        ("GPU", "/device:GPU:0"),
        (LogicalDevice("/device:CPU:1", "CPU"), "/device:CPU:1"),
        (DeviceSpec(device_type="GPU"), "/device:GPU:0"),
    ],
)
def test_get_device(simulate: Simulate, name: Any, expected: str) -> None:
    cpu = devices.list_physical_devices("CPU")[0]
    devices.set_logical_device_configuration(cpu, [LogicalDeviceConfiguration()] * 2)
    simulate(2)
    found = devices.get_device(name)
    assert found.name == expected
    assert devices.get_device(found) is found


@cases("name", ["GPU:2", "TPU", "/job:worker/GPU:0", "/task:0", ""])
def test_get_device_lists_those_there_are(simulate: Simulate, name: str) -> None:
    simulate(1)
    with pytest.raises(InvalidArgumentError, match="unknown device") as error:
        devices.get_device(name)
    assert f"Received: {name!r}" in str(error.value)
    assert f"All available devices [{FULL}CPU:0, {FULL}GPU:0]" in str(error.value)


@cases(
    ("device_type", "names"),
    [
        (None, ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]),
        ("GPU", ["/device:GPU:0", "/device:GPU:1"]),
        ("TPU", []),
    ],
)
def test_logical_devices(simulate: Simulate, device_type: str | None, names: list[str]) -> None:
    simulate(2)
    assert [device.name for device in devices.logical_devices(device_type)] == names


# The log: off by default, one line an op when on.


@pytest.mark.behaviour("placement-log")
def test_the_log_is_off_until_asked_for(
    simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
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


@cases("enabled", ["yes", None, 2])
def test_the_log_is_a_flag(enabled: Any) -> None:
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
