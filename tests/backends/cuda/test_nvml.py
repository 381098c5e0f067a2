"""Cards are listed by the driver's own words, and each thing that can be wrong is one sentence."""

import ctypes
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mirrored.backends.cuda import nvml

UUIDS = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-01010101-0101-0101-0101-010101010101")


def written(reference: Any) -> Any:
    """Return what a ctypes reference points to."""
    return reference._obj


class FakeNvml:
    """NVML with two cards, by its C interface, as the real pynvml calls it.

    Args:
        statuses: What functions answer, by name, instead of success.
    """

    def __init__(self, **statuses: int) -> None:
        self.statuses = statuses
        self.started = 0

    def __getattr__(self, name: str) -> Any:
        implementation = getattr(FakeNvml, f"_{name}")

        def call(*args: Any) -> int:
            if name != "nvmlInitWithFlags" and not self.started:
                return 1
            status = self.statuses.get(name, 0)
            if not status:
                implementation(self, *args)
            return status

        return call

    def _nvmlInitWithFlags(self, flags: int) -> None:
        assert flags == 0
        self.started += 1

    def _nvmlShutdown(self) -> None:
        self.started -= 1

    def _nvmlSystemGetDriverVersion(self, text: Any, length: Any) -> None:
        text.value = b"580.95.05"

    def _nvmlSystemGetCudaDriverVersion_v2(self, version: Any) -> None:
        written(version).value = 13010

    def _nvmlDeviceGetCount_v2(self, count: Any) -> None:
        written(count).value = 2

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> None:
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_size_t))[0] = index.value + 1

    def _nvmlDeviceGetPciInfo_v3(self, handle: Any, pci: Any) -> None:
        info = written(pci)
        info.domain, info.bus, info.device = 0, 0x3B + self._number(handle), 2
        info.busId = b"00000000:3B:02.0"

    def _nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> None:
        written(major).value, written(minor).value = 9 - self._number(handle), 0

    def _nvmlDeviceGetName(self, handle: Any, text: Any, length: Any) -> None:
        text.value = b"NVIDIA H200"

    def _nvmlDeviceGetUUID(self, handle: Any, text: Any, length: Any) -> None:
        text.value = UUIDS[self._number(handle)].encode()

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> None:
        written(memory).total = 150 << 30

    def _nvmlDeviceGetP2PStatus(self, one: Any, other: Any, what: int, status: Any) -> None:
        assert what == 0
        written(status).value = self._number(one)  # The second card reads nobody's memory.

    @staticmethod
    def _number(handle: Any) -> int:
        return (ctypes.cast(handle, ctypes.c_void_p).value or 0) - 1


def install(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    """Let the real pynvml call a library; None: there is none, or no pynvml."""
    pynvml = None
    if library is not None:
        pynvml = pytest.importorskip("pynvml")
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(nvml, "load", lambda: pynvml)


def test_cards(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    library = FakeNvml()
    install(monkeypatch, library)
    assert nvml.cards() == [
        nvml.Card(0, "NVIDIA H200", UUIDS[0], "0000:3b:02.0", (9, 0), 150 << 30),
        nvml.Card(1, "NVIDIA H200", UUIDS[1], "0000:3c:02.0", (8, 0), 150 << 30),
    ]
    assert library.started == 0
    assert caplog.messages == []


def test_what_the_driver_says_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeNvml())
    found = nvml.survey()
    assert (found.driver, found.cuda, found.problem) == ("580.95.05", (13, 1), None)


def test_a_card_that_shares_the_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeNvml(nvmlDeviceGetMemoryInfo=3))
    assert [card.memory for card in nvml.cards()] == [None, None]


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("nvmlInitWithFlags", 9, None),
        ("nvmlInitWithFlags", 18, "Restart the machine."),
        ("nvmlInitWithFlags", 999, "answered nvmlInit with error 999. `nvidia-smi` says more."),
        ("nvmlDeviceGetMemoryInfo", 15, "answered nvmlDeviceGetMemoryInfo with error 15."),
        ("nvmlDeviceGetHandleByIndex_v2", 4, "nvmlDeviceGetHandleByIndex with error 4."),
    ],
)
def test_a_driver_that_refuses(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    function: str,
    status: int,
    said: str | None,
) -> None:
    library = FakeNvml(**{function: status})
    install(monkeypatch, library)
    assert nvml.cards() == []
    assert library.started == 0
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    if said is None:  # Libraries of the driver on a machine without a card are no problem.
        assert warnings == []
        return
    (warning,) = warnings
    assert warning.startswith("No GPU is used: ")
    assert said in warning


def test_peer_access(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeNvml()
    install(monkeypatch, library)
    assert nvml.peer_access() == [[True, True], [False, True]]
    assert library.started == 0


@pytest.mark.parametrize(
    "library",
    [None, object(), FakeNvml(nvmlInitWithFlags=9), FakeNvml(nvmlDeviceGetP2PStatus=2)],
    ids=["no-nvml", "old-nvml", "no-driver", "refused"],
)
def test_peer_access_that_is_not_known(monkeypatch: pytest.MonkeyPatch, library: Any) -> None:
    install(monkeypatch, library)
    assert nvml.peer_access() is None


# Which libraries there are.

LIBCUDA = "libcuda.so.1"


@pytest.mark.parametrize(
    ("there", "loaded"),
    [
        ((), False),
        ((nvml.NVML, "pynvml"), False),  # A container may look at cards, and not compute on them.
        ((LIBCUDA, "pynvml"), False),
        ((LIBCUDA, nvml.NVML), False),
        ((LIBCUDA, nvml.NVML, "pynvml"), True),
    ],
)
def test_nvml_is_used_where_cuda_s_driver_is_too(
    monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], loaded: bool
) -> None:
    def open_library(name: str) -> str:
        if name not in there:
            raise OSError(name)
        return name

    pynvml = ModuleType("pynvml")
    monkeypatch.setattr(nvml, "DRIVER", LIBCUDA)  # Tests are not to find a real one.
    monkeypatch.setattr(ctypes, "CDLL", open_library)
    monkeypatch.setitem(sys.modules, "pynvml", pynvml if "pynvml" in there else None)
    assert nvml.load() is (pynvml if loaded else None)


def test_without_a_driver_there_are_no_cards_and_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nvml, "DRIVER", "libno-such-driver.so")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    assert nvml.survey() == nvml.Survey()
    assert nvml.cards() == []
    assert caplog.messages == []


# A driver without NVML, which a child process asks.

DRIVER = r"""
#include <stdlib.h>
#include <string.h>
static int started;
int cuInit(unsigned flags) { started = 1; return INIT_STATUS; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) {
    *count = getenv("CUDA_VISIBLE_DEVICES") ? 0 : 2;
    return !started;
}
int cuDeviceGet(int *device, int ordinal) { *device = 40 + ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    strcpy(name, device == 40 ? "Tesla A" : "Tesla B");
    return length != 256;
}
int cuDeviceGetPCIBusId(char *id, int length, int device) {
    strcpy(id, device == 40 ? "0000:3B:00.0" : "0000:AF:00.0");
    return strcmp(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
}
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, device - 39, 16); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? 8 : which == 76 ? 6 : -1;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)48 << 30; return 0; }
"""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return ``driver(status)``: puts a driver in place, without NVML, whose cuInit says that."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def install_driver(status: int) -> None:
        library = tmp_path / "libcuda.so.1"
        command = [compiler, f"-DINIT_STATUS={status}", "-shared", "-fPIC", "-xc", "-"]
        subprocess.run([*command, "-o", str(library)], input=DRIVER, text=True, check=True)
        monkeypatch.setattr(nvml, "DRIVER", str(library))
        install(monkeypatch, None)

    return install_driver


def test_a_child_lists_all_cards(monkeypatch: pytest.MonkeyPatch, driver: Any) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    driver(0)
    assert nvml.survey() == nvml.Survey(
        cards=(
            nvml.Card(0, "Tesla A", UUIDS[1], "0000:3b:00.0", (8, 6), 48 << 30),
            nvml.Card(1, "Tesla B", UUIDS[1].replace("1", "2"), "0000:af:00.0", (8, 6), 48 << 30),
        ),
        driver=None,
        cuda=(12, 8),
        problem=None,
    )


@pytest.mark.parametrize(("status", "said"), [(100, None), (803, "answered cuInit with error 803")])
def test_a_driver_that_does_not_start(driver: Any, status: int, said: str | None) -> None:
    driver(status)
    found = nvml.survey()
    assert found.cards == ()
    assert found.problem is None if said is None else said in str(found.problem)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit(7)", "ended with status 7. Install the driver's NVML"),
        ("print('cards?')", "failed: Expecting value"),
        ("import time; time.sleep(60)", "gave no answer within 0.2 s"),
    ],
)
def test_a_child_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, script: str, said: str
) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr(nvml, "_can_load", lambda name: True)
    monkeypatch.setattr(nvml, "_CHILD", script)
    if "sleep" in script:
        monkeypatch.setattr(nvml, "_DEADLINE_S", 0.2)
    assert nvml.cards() == []
    assert said in caplog.text


def test_a_program_without_an_interpreter_of_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr(nvml, "_can_load", lambda name: True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert nvml.cards() == []
    assert "No such file or directory" in caplog.text
