"""CuPy is imported once, and what is missing is one sentence with the command that mends it."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import metadata
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import mirrored as mr
from mirrored.backends.cuda import nvml, toolkit
from mirrored.errors import DeviceUnavailableError

CUDA12, CUDA13 = (
    f"pip install '.[cuda{major}]' in a checkout of mirrored's repository" for major in (12, 13)
)


def refuse(error: Exception) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


def fake_cupy(
    *,
    driver: int = 13000,
    runtime: int = 12090,
    count: Callable[[], int] = lambda: 1,
    nvrtc: Callable[[], tuple[int, int]] = lambda: (12, 9),
) -> ModuleType:
    """Return what stands for CuPy, on a machine as the arguments say."""
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=SimpleNamespace(
            driverGetVersion=lambda: driver,
            runtimeGetVersion=lambda: runtime,
            getDeviceCount=count,
        ),
        nvrtc=SimpleNamespace(getVersion=nvrtc),
    )
    return cupy


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return ``machine(cupy, packages, cuda)``: what is installed, and what the driver runs."""

    def make(
        cupy: ModuleType | None = None,
        packages: tuple[str, ...] = ("cupy-cuda12x",),
        cuda: tuple[int, int] | None = (13, 0),
    ) -> None:
        installed = [SimpleNamespace(metadata={"Name": name}) for name in ("numpy", *packages)]
        installed.append(SimpleNamespace(metadata={}))
        monkeypatch.setattr(metadata, "distributions", lambda: iter(installed))
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cuda=cuda))
        monkeypatch.setattr(toolkit, "_loaded", None)
        monkeypatch.setenv("CUDA_DEVICE_ORDER", "")  # So that it is put back as it was.
        monkeypatch.delenv("CUDA_DEVICE_ORDER")

    return make


def refused() -> str:
    with pytest.raises(DeviceUnavailableError) as error:
        toolkit.toolkit()
    text = str(error.value)
    assert text.startswith("GPUs cannot be used: ")
    return text


def test_cupy_is_returned_and_checked_once(machine: Callable[..., None]) -> None:
    asked: list[int] = []
    cupy = fake_cupy(count=lambda: asked.append(0) or 1)
    machine(cupy)
    assert toolkit.toolkit() is cupy
    assert toolkit.toolkit() is cupy
    assert len(asked) == 1


def test_threads_get_one_module(machine: Callable[..., None]) -> None:
    """A second thread comes while the first one checks."""
    checking, go_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def count() -> int:
        asked.append(0)
        checking.set()
        assert go_on.wait(timeout=60)
        return 1

    machine(fake_cupy(count=count))
    threads = [threading.Thread(target=toolkit.toolkit) for _ in range(2)]
    threads[0].start()
    assert checking.wait(timeout=60)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(timeout=60)
    assert len(asked) == 1


@pytest.mark.parametrize("order", [None, "FASTEST_FIRST"])
def test_cards_are_numbered_by_bus_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, machine: Callable[..., None], order: str | None
) -> None:
    machine(fake_cupy())
    if order is not None:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    toolkit.toolkit()
    assert os.environ["CUDA_DEVICE_ORDER"] == (order or "PCI_BUS_ID")


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(
    ("cuda", "command"), [((12, 4), CUDA12), ((13, 0), CUDA13), ((14, 1), CUDA13), (None, CUDA12)]
)
def test_no_cupy(machine: Callable[..., None], cuda: tuple[int, int] | None, command: str) -> None:
    machine(None, packages=(), cuda=cuda)
    assert refused() == f"GPUs cannot be used: CuPy is not installed. Install it: {command}"


def test_what_was_missing_is_looked_for_again(machine: Callable[..., None]) -> None:
    machine(None, packages=())
    refused()
    sys.modules["cupy"] = fake_cupy()
    assert toolkit.toolkit() is sys.modules["cupy"]


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(
    "packages", [("cupy-cuda13x", "cupy-cuda12x"), ("cupy", "cupy-cuda12x", "cupy-rocm-7-0")]
)
def test_several_cupys(machine: Callable[..., None], packages: tuple[str, ...]) -> None:
    machine(fake_cupy(), packages=packages)
    text = refused()
    assert f"Received: {', '.join(sorted(packages))}." in text
    assert text.endswith(f": pip uninstall -y {' '.join(sorted(packages))} && {CUDA13}")


@pytest.mark.parametrize(
    "packages", [("cupy-cuda12x", "cupy-cuda12x"), ("cupyx-of-others", "cupy")]
)
def test_one_cupy_that_is_listed_twice_or_beside_others(
    machine: Callable[..., None], packages: tuple[str, ...]
) -> None:
    machine(fake_cupy(), packages=packages)
    assert toolkit.toolkit()


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(
    "error",
    [
        ImportError("\n=====\nFailed to import CuPy.\n\nlibcudart.so.12: no such file\n====="),
        ModuleNotFoundError("Failed to import CuPy.", name="fastrlock"),
    ],
)
def test_a_cupy_that_cannot_be_imported(
    monkeypatch: pytest.MonkeyPatch, machine: Callable[..., None], error: ImportError
) -> None:
    machine(fake_cupy())
    monkeypatch.setattr("importlib.import_module", lambda name: refuse(error)())
    text = refused()
    assert f"Received: {type(error).__name__}: Failed to import CuPy. Install it again" in text
    assert text.endswith(f": pip uninstall -y cupy-cuda12x && {CUDA13}")


def test_a_cupy_that_no_package_brought(
    machine: Callable[..., None],
) -> None:
    machine(fake_cupy(driver=12040, runtime=13000), packages=())
    assert refused().endswith(f"drivers, or a CuPy for it: {CUDA12}")


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(
    ("driver", "runtime", "found", "command"),
    [
        (12040, 13000, "up to 12.4, and CuPy for CUDA 13", f"cupy-cuda12x && {CUDA12}"),
        (11080, 12090, "up to 11.8, and CuPy for CUDA 12", "nvidia.com/drivers"),
    ],
)
def test_a_driver_that_is_too_old(
    machine: Callable[..., None], driver: int, runtime: int, found: str, command: str
) -> None:
    machine(fake_cupy(driver=driver, runtime=runtime))
    text = refused()
    assert "too old" in text
    assert found in text
    assert text.endswith(command)


def test_an_older_minor_version_of_the_driver_will_do(machine: Callable[..., None]) -> None:
    machine(fake_cupy(driver=12020, runtime=12090))
    assert toolkit.toolkit()


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(
    ("cupy", "expected"),
    [
        (fake_cupy(driver=0), "CuPy finds no NVIDIA driver. Install one"),
        (fake_cupy(count=lambda: 0), "CUDA finds no card. `nvidia-smi` shows"),
        (
            fake_cupy(count=refuse(RuntimeError("cudaErrorUnknown: unknown"))),
            "CUDA does not start. Received: RuntimeError: cudaErrorUnknown: unknown. If it happens",
        ),
    ],
)
def test_no_driver_and_no_card(
    machine: Callable[..., None], cupy: ModuleType, expected: str
) -> None:
    machine(cupy)
    assert expected in refused()


def test_a_forked_process(machine: Callable[..., None]) -> None:
    error = RuntimeError("cudaErrorInitializationError: initialization error")
    error.status = 3  # type: ignore[attr-defined]
    machine(fake_cupy(count=refuse(error)))
    assert "start processes with multiprocessing's method 'spawn'" in refused()


@pytest.mark.behaviour("gpu-unavailable")
@pytest.mark.parametrize(("runtime", "command"), [(12090, CUDA12), (13000, CUDA13)])
def test_no_nvrtc(machine: Callable[..., None], runtime: int, command: str) -> None:
    missing = RuntimeError('Failure finding "libnvrtc.so": No such file\nmore')
    machine(fake_cupy(runtime=runtime, nvrtc=refuse(missing)))
    text = refused()
    assert 'Received: RuntimeError: Failure finding "libnvrtc.so": No such file. ' in text
    assert text.endswith(f"Install it: {command}")


@pytest.mark.parametrize(
    ("packages", "cuda", "expected"),
    [
        (("cupy-cuda12x",), (13, 0), 12),
        (("CuPy-CUDA13x",), (12, 8), 13),
        (("cupy",), (12, 8), 12),
        ((), (13, 0), 13),
        ((), None, None),
    ],
)
def test_the_version_of_cuda_that_libraries_are_for(
    machine: Callable[..., None],
    packages: tuple[str, ...],
    cuda: tuple[int, int] | None,
    expected: int | None,
) -> None:
    machine(None, packages=packages, cuda=cuda)
    assert toolkit.wanted_major() == expected


@pytest.mark.slow
def test_the_real_cupy_on_a_machine_without_a_driver() -> None:
    """What CuPy is asked for is there; only the driver is missing, which is the next sentence."""
    pytest.importorskip("cupy")
    if nvml.survey() != nvml.Survey():
        pytest.skip("this machine has a driver")
    finished = subprocess.run(
        [sys.executable, "-c", _TRY_AND_COMPUTE],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert finished.stdout == "CuPy finds no NVIDIA driver\n12 True\n[2.0, 4.0]\n"


_TRY_AND_COMPUTE = """
import re
from mirrored.backends.cuda import toolkit
try:
    toolkit.toolkit()
except RuntimeError as error:
    print(re.search("CuPy finds no NVIDIA driver", str(error))[0])
import cupy
print(cupy.cuda.runtime.runtimeGetVersion() // 1000, cupy.cuda.nvrtc.getVersion() >= (12, 0))
import mirrored as mr
print((mr.constant([1.0, 2.0]) * 2.0).numpy().tolist())
"""


@pytest.mark.behaviour("gpu-unavailable")
def test_the_cpu_is_usable_where_the_gpu_is_not(
    monkeypatch: pytest.MonkeyPatch, machine: Callable[..., None]
) -> None:
    machine(None, packages=())
    card = nvml.Card(0, "NVIDIA H200", "GPU-beef", "0000:3b:00.0", (9, 0), 150 << 30)
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cards=(card,), cuda=(12, 8)))
    assert [device.name for device in mr.config.list_logical_devices("GPU")] == ["/device:GPU:0"]
    with pytest.raises(DeviceUnavailableError) as error, mr.device("GPU:0"):
        mr.constant([1.0])
    assert str(error.value).endswith(CUDA12)
    with mr.device("CPU:0"):
        assert (mr.constant([1.0]) + 1.0).numpy().tolist() == [2.0]
