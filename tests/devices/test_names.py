"""The grammar of device names, held to TensorFlow's reading of the same strings."""

import pytest
from case_table import cases

from mirrored.devices import DeviceSpec, LogicalDevice, PhysicalDevice
from mirrored.devices.names import full_name

FULL = "/job:localhost/replica:0/task:0"


@pytest.mark.behaviour("device-names")
@cases(
    ("text", "canonical"),
    [
        (f"{FULL}/device:GPU:1", f"{FULL}/device:GPU:1"),
        ("/device:GPU:1", "/device:GPU:1"),
        ("/GPU:1", "/device:GPU:1"),
        ("GPU:1", "/device:GPU:1"),
        ("/gpu:1", "/device:GPU:1"),
        ("gpu:1", "/device:GPU:1"),
        ("/device:gpu:1", "/device:GPU:1"),
        ("/cpu:0", "/device:CPU:0"),
        ("GPU", "/device:GPU:*"),
        ("/GPU", "/device:GPU:*"),
        ("GPU:*", "/device:GPU:*"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/TPU:1", "/device:TPU:1"),
        ("/device:foo:1", "/device:foo:1"),
        ("//CPU:0", "/device:CPU:0"),
        ("/job:worker", "/job:worker"),
        ("/task:1/replica:2", "/replica:2/task:1"),
        ("/device:CPU:0/job:worker", "/job:worker/device:CPU:0"),
        ("", ""),
        ("/", ""),
    ],
)
def test_every_form_is_read(text: str, canonical: str) -> None:
    spec = DeviceSpec.from_string(text)
    assert spec.to_string() == canonical
    assert DeviceSpec.from_string(canonical) == spec


@pytest.mark.behaviour("device-names")
@cases(
    ("text", "message"),
    [
        (
            "/foo:1",
            "Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:1'.",
        ),
        ("a", "Unknown attribute 'a' is encountered while parsing the device spec: 'a'."),
        ("/job", "Unknown attribute 'job' is encountered while parsing the device spec: '/job'."),
        (
            "/device:GPU",
            "Unknown attribute 'device' is encountered while parsing the device spec: "
            "'/device:GPU'.",
        ),
        (
            "/GPU:1:2",
            "Unknown attribute 'GPU' is encountered while parsing the device spec: '/GPU:1:2'.",
        ),
        (
            "/job:a/b:c",
            "Unknown attribute 'b' is encountered while parsing the device spec: '/job:a/b:c'.",
        ),
        (
            "/CPU:0/GPU:1",
            "Multiple device types are not allowed while parsing the device spec: /CPU:0/GPU:1.",
        ),
        (
            "/device:CPU:0/device:CPU:0",
            "Multiple device types are not allowed while parsing the device spec: "
            "/device:CPU:0/device:CPU:0.",
        ),
        ("/GPU:x", "invalid literal for int() with base 10: 'x'"),
        ("/device:GPU:", "invalid literal for int() with base 10: ''"),
        ("/replica:x", "invalid literal for int() with base 10: 'x'"),
        ("/task:1.5", "invalid literal for int() with base 10: '1.5'"),
        ("/GPU:-1", "Malformed device specification '/GPU:-1'"),
        ("/task:-2", "the task index must be 0 or more. Received: -2"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared below
        DeviceSpec.from_string(text)
    assert message in str(error.value)


@pytest.mark.behaviour("device-names")
@cases(
    ("text", "expected"),
    [
        ("GPU", f"{FULL}/device:GPU:0"),
        ("/cpu:2", f"{FULL}/device:CPU:2"),
        ("/task:1/GPU:3", "/job:localhost/replica:0/task:1/device:GPU:3"),
        ("/job:worker", "/job:worker/replica:0/task:0"),
        ("", FULL),
    ],
)
def test_open_parts_are_filled_in(text: str, expected: str) -> None:
    assert DeviceSpec.from_string(text).full_name() == expected


@cases(
    ("text", "local"),
    [
        ("GPU:7", True),
        (f"{FULL}/device:CPU:0", True),
        ("/job:worker/CPU:0", False),
        ("/replica:1/CPU:0", False),
        ("/task:1/CPU:0", False),
    ],
)
def test_is_local(text: str, local: bool) -> None:
    assert DeviceSpec.from_string(text).is_local is local


def test_specs_are_values() -> None:
    one, other = DeviceSpec.from_string("/gpu:1"), DeviceSpec(device_type="GPU", device_index=1)
    assert one == other
    assert len({one, other}) == 1
    with pytest.raises(AttributeError):
        one.job = "worker"  # type: ignore[misc]


@pytest.mark.behaviour("device-tuples")
def test_listed_devices_print_as_tensorflow_prints_them() -> None:
    physical = PhysicalDevice(name="/physical_device:GPU:0", device_type="GPU")
    assert repr(physical) == "PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')"
    logical = LogicalDevice("/device:GPU:0", "GPU")
    assert repr(logical) == "LogicalDevice(name='/device:GPU:0', device_type='GPU')"
    assert logical.name == "/device:GPU:0"


def test_full_name() -> None:
    assert full_name("CPU", 3) == f"{FULL}/device:CPU:3"
