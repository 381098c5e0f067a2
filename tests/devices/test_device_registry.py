"""Lazy initialisation: what the environment says, what is logged, and that it happens once."""

import logging
import threading
from collections.abc import Callable

import pytest
from case_table import cases

from mirrored import backends, devices
from mirrored.devices import Device, LogicalDevice, LogicalDeviceConfiguration
from mirrored.devices.device_registry import registry

Simulate = Callable[..., list[LogicalDevice]]


def gpu_ordinals() -> list[str]:
    return [device.name[-1] for device in devices.list_physical_devices("GPU")]


# MIRRORED_SIMULATED_GPUS


@pytest.mark.parametrize(("value", "count"), [("4", 4), (" 2 ", 2), ("0", 0), ("", 0)])
def test_simulated_gpus_by_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, count: int
) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", value)
    assert len(devices.list_logical_devices("GPU")) == count


@pytest.mark.parametrize("value", ["four", "-1", "1.5", "4,2", "²", "1025", "99999999", "9" * 20])
def test_a_malformed_number_of_simulated_gpus(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", value)
    for listing in (devices.list_physical_devices, devices.list_logical_devices):
        with pytest.raises(ValueError, match="MIRRORED_SIMULATED_GPUS must be a number") as error:
            listing()
        assert f"Received: {value!r}" in str(error.value)
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "1")
    assert len(devices.list_logical_devices("GPU")) == 1


def test_the_program_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "4")
    devices.set_simulated_gpus(0)
    assert devices.list_physical_devices("GPU") == []


def test_the_environment_s_gpus_again_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "2")
    devices.list_logical_devices()
    devices.set_simulated_gpus(2)
    assert len(devices.list_logical_devices("GPU")) == 2


# CUDA_VISIBLE_DEVICES


@pytest.mark.behaviour("cuda-visible-devices")
@pytest.mark.parametrize(
    ("value", "ordinals"),
    [("1", [1]), ("3,0", [3, 0]), ("", []), ("-1", []), ("0,9,1", [0]), ("0,1,2,3", [0, 1, 2, 3])],
)
def test_cuda_visible_devices(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    value: str,
    ordinals: list[int],
) -> None:
    """Simulated GPUs that are hidden are reported, once."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "4")
    assert gpu_ordinals() == [str(number) for number in range(len(ordinals))]
    found = registry.hardware()
    assert [h.ordinal for h in found.values() if h.device_type == "GPU"] == ordinals
    assert len(devices.list_logical_devices("GPU")) == len(ordinals)
    said = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    hidden = f"{len(ordinals)} of 4 simulated GPUs are visible: CUDA_VISIBLE_DEVICES={value!r}"
    assert [each[: len(hidden)] for each in said] == [hidden] * (len(ordinals) < 4)


@pytest.mark.behaviour("cuda-visible-devices-late")
def test_cuda_visible_devices_is_read_at_the_first_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    devices.set_simulated_gpus(4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpu_ordinals() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu_ordinals() == ["0", "1"]
    assert len(devices.list_logical_devices("GPU")) == 2


# Memory growth


@pytest.mark.behaviour("memory-growth-differs")
@cases("settings", [(True, None), (False, None), (True, False), (None, True)])
def test_growth_that_differs_is_an_error_at_initialisation(
    settings: tuple[bool | None, bool | None],
) -> None:
    devices.set_simulated_gpus(2)
    gpus = devices.list_physical_devices("GPU")
    for gpu, setting in zip(gpus, settings, strict=True):
        if setting is not None:
            devices.set_memory_growth(gpu, setting)
    with pytest.raises(
        ValueError, match="Memory growth cannot differ between GPU devices"
    ) as error:
        devices.list_logical_devices()
    for gpu, setting in zip(gpus, settings, strict=True):
        assert f"{gpu.name} {setting}" in str(error.value)
    for gpu in gpus:  # Nothing is frozen yet.
        devices.set_memory_growth(gpu, True)
    assert len(devices.list_logical_devices("GPU")) == 2


@pytest.mark.parametrize("way_out", ["hide", "split"])
def test_growth_may_differ_where_it_does_not_matter(way_out: str) -> None:
    devices.set_simulated_gpus(2)
    first, second = devices.list_physical_devices("GPU")
    devices.set_memory_growth(first, True)
    if way_out == "hide":
        devices.set_visible_devices([first], "GPU")
    else:
        devices.set_logical_device_configuration(second, [LogicalDeviceConfiguration(1)])
    assert devices.list_logical_devices("GPU")


@pytest.mark.behaviour("memory-growth-environment")
@pytest.mark.parametrize(
    ("environment", "setting", "expected"),
    [
        ({}, None, False),
        ({}, True, True),
        ({}, False, False),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, None, True),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, False, True),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "false"}, True, False),
        ({"MIRRORED_FORCE_GPU_ALLOW_GROWTH": "True"}, None, True),
        ({"MIRRORED_FORCE_GPU_ALLOW_GROWTH": "1"}, None, True),
        ({"MIRRORED_FORCE_GPU_ALLOW_GROWTH": "0", "TF_FORCE_GPU_ALLOW_GROWTH": "1"}, True, False),
        ({"MIRRORED_FORCE_GPU_ALLOW_GROWTH": ""}, True, True),
    ],
)
def test_growth_reaches_the_backend(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    setting: bool | None,
    expected: bool,
) -> None:
    asked: list[bool] = []

    class Recording(backends.HostBackend):
        def make_pool(
            self, limit: int | None, *, parent: backends.Pool | None, growth: bool
        ) -> backends.Pool:
            asked.append(growth)
            return super().make_pool(limit, parent=parent, growth=growth)

    found = (
        backends.Hardware("CPU", 0, "host", lambda _: backends.HostBackend()),
        backends.Hardware("GPU", 0, "card", lambda _: Recording()),
    )
    monkeypatch.setattr(backends, "probe", lambda *_: found)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    gpu = devices.list_physical_devices("GPU")[0]
    if setting is not None:
        devices.set_memory_growth(gpu, setting)
    devices.list_logical_devices()
    assert asked == [expected]
    assert devices.get_memory_growth(gpu) is setting


def test_a_growth_variable_that_is_no_flag_is_ignored_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "maybe")
    devices.list_logical_devices()
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == [
        "Ignored TF_FORCE_GPU_ALLOW_GROWTH: it must be 'true' or 'false'. Received: 'maybe'"
    ]


# Backends


class Opened(backends.HostBackend):
    """A backend that knows which one it is, and which limits it was asked for.

    Args:
        all_opened: Where it is noted.
    """

    def __init__(self, all_opened: "list[Opened]") -> None:
        self.limits: list[int | None] = []
        all_opened.append(self)

    def make_pool(
        self, limit: int | None, *, parent: backends.Pool | None, growth: bool
    ) -> backends.Pool:
        self.limits.append(limit)
        return super().make_pool(limit, parent=parent, growth=growth)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """A machine with a real card; return the backends that are opened for it."""
    opened: list[Opened] = []
    details = {"compute_capability": (9, 0), "pci_bus_id": "0000:3b:00.0"}
    found = (
        backends.Hardware("CPU", 0, "host", lambda _: backends.HostBackend()),
        backends.Hardware(
            "GPU", 0, "NVIDIA H200", lambda _: Opened(opened), memory=4 << 30, details=details
        ),
    )
    monkeypatch.setattr(backends, "probe", lambda *_: found)
    return opened


def test_each_logical_device_has_a_backend_of_its_own(card: list[Opened]) -> None:
    (gpu,) = devices.list_physical_devices("GPU")
    assert card == []
    parts = [LogicalDeviceConfiguration(512), LogicalDeviceConfiguration(1024)]
    devices.set_logical_device_configuration(gpu, parts)
    first, second = devices.logical_devices()[1:]
    assert first.backend is not second.backend
    assert [backend.limits for backend in card] == [[4 << 30], [512 << 20], [1024 << 20]]
    assert card[1:] == [first.backend, second.backend]
    assert first.pool.parent is second.pool.parent
    assert first.pool.parent is not None
    assert first.pool.parent.limit == 4 << 30


def test_a_real_card_is_announced_as_tensorflow_does(
    card: list[Opened], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mirrored")
    devices.list_logical_devices()
    assert caplog.messages[1] == (
        "Created logical device /job:localhost/replica:0/task:0/device:GPU:0 with 4096 MB memory "
        "-> physical device: /physical_device:GPU:0, name: NVIDIA H200, "
        "pci bus id: 0000:3b:00.0, compute capability: 9.0"
    )


# Initialisation


@pytest.mark.behaviour("notes-are-information")
def test_initialisation_logs_a_line_a_device(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mirrored")
    devices.set_simulated_gpus(2, memory_limit=4096)
    first, _ = devices.list_physical_devices("GPU")
    parts = [LogicalDeviceConfiguration(1024), LogicalDeviceConfiguration(0.5)]
    devices.set_logical_device_configuration(first, parts)
    assert caplog.messages == []
    devices.list_logical_devices()
    devices.list_logical_devices()
    line = (
        "Created logical device /job:localhost/replica:0/task:0/device:GPU:{} with {} MB memory "
        "-> physical device: /physical_device:GPU:{}, name: simulated GPU (host memory)"
    )
    cpu, *gpus = caplog.messages
    assert gpus == [line.format(0, 1024, 0), line.format(1, 0.5, 0), line.format(2, 4096, 1)]
    assert cpu.startswith(
        "Created logical device /job:localhost/replica:0/task:0/device:CPU:0 with no memory limit "
        "(the host has "
    )
    assert "-> physical device: /physical_device:CPU:0, name: host CPU (" in cpu
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_a_host_that_does_not_tell_its_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mirrored")
    monkeypatch.setattr(backends, "host_memory", lambda: None)
    devices.list_logical_devices()
    assert "device:CPU:0 with no memory limit -> physical device" in caplog.text


class WatchedLock:
    """The registry's lock, which tells when a thread of a given name asks for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = threading.Event()
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if threading.current_thread().name == self.name:
            self.asked.set()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_initialise_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A second thread comes while the first makes the devices, and gets the first one's."""
    devices.set_simulated_gpus(2)
    lock, making = WatchedLock("second"), threading.Event()
    probe = backends.probe
    seen: list[tuple[Device, ...]] = []

    def probe_until_the_second_waits(gpus: int, limit: int | None) -> tuple[backends.Hardware, ...]:
        making.set()
        lock.asked.wait(timeout=60)
        return probe(gpus, limit)

    def look() -> None:
        seen.append(devices.logical_devices())

    caplog.set_level(logging.DEBUG, "mirrored")
    monkeypatch.setattr(backends, "probe", probe_until_the_second_waits)
    monkeypatch.setattr(registry, "lock", lock)
    first = threading.Thread(target=look, name="first")
    second = threading.Thread(target=look, name="second")
    first.start()
    assert making.wait(timeout=60)
    second.start()
    for thread in (first, second):
        thread.join(timeout=60)
    assert len(seen) == 2
    assert seen[0] is seen[1]
    assert len(caplog.messages) == 3


def test_reset_forgets_everything(simulate: Simulate) -> None:
    simulate(2)
    devices.set_soft_device_placement(False)
    devices.set_log_device_placement(True)
    devices.set_device_policy("warn")
    devices.reset_devices()
    assert [device.name for device in devices.logical_devices()] == ["/device:CPU:0"]
    assert devices.get_soft_device_placement()
    assert not devices.get_log_device_placement()
    assert devices.get_device_policy() == "silent"
