"""Where NVIDIA's libraries are found, for each that is used through ctypes."""

import ctypes
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from mirrored.backends.cuda import blas, nccl, nvml, solver, toolkit
from mirrored.errors import DeviceUnavailableError


class Library(NamedTuple):
    """What finds a library, its name for cuda-pathfinder, and its file's."""

    load: Callable[[], Any]
    name: str
    file: str


LIBRARIES = {
    "cublas": Library(blas.load, "cublas", "libcublas.so.12"),
    "cusolver": Library(solver.load, "cusolver", "libcusolver.so.11"),
    "nccl": Library(nccl.load, "nccl", "libnccl.so.2"),
}
each_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


@pytest.fixture
def openable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The libraries that open, of a machine with CuPy for CUDA 12 and without cuda-pathfinder."""
    names: set[str] = set()

    def open_library(name: str) -> str:
        if name not in names:
            raise OSError(f"{name}: cannot open shared object file")
        return name

    runtime = SimpleNamespace(runtimeGetVersion=lambda: 12090)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(toolkit, "toolkit", lambda: cupy)
    monkeypatch.setattr(toolkit, "_packages", lambda: ["cupy-cuda12x"])
    monkeypatch.setattr(ctypes, "CDLL", open_library)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    return names


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (LIBRARIES["cublas"], r"cuBLAS for CUDA 12, libcublas\.so\.12, was not found"),
        (LIBRARIES["cusolver"], r"cuSOLVER for CUDA 12, libcusolver\.so\.11, was not found"),
        (LIBRARIES["nccl"], r"NCCL cannot be used: libnccl\.so\.2 was not found"),
    ],
)
def test_no_library(library: Library, said: str, openable: set[str]) -> None:
    openable.add(library.file.rpartition(".")[0] + ".99")
    with pytest.raises(DeviceUnavailableError, match=said) as error:
        library.load()
    assert str(error.value).endswith(toolkit.install_command(12))


@pytest.mark.usefixtures("openable")
def test_nccl_is_looked_for_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA would be started, which the question whether there is an NCCL must not do."""
    monkeypatch.setattr(toolkit, "toolkit", lambda: pytest.fail("CuPy was imported."))
    monkeypatch.setattr(toolkit, "_packages", list)
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cuda=(13, 0)))
    with pytest.raises(DeviceUnavailableError, match=r"'\.\[cuda13\]'"):
        nccl.load()


@each_library
def test_the_system_s_library(openable: set[str], library: Library) -> None:
    openable.add(library.file)
    assert library.load() == library.file


@pytest.mark.parametrize(("found", "used"), [("", True), (".9.1.4", True), ("3", False)])
@each_library
def test_what_pathfinder_finds_is_of_the_version(
    monkeypatch: pytest.MonkeyPatch, openable: set[str], library: Library, found: str, used: bool
) -> None:
    path = f"/elsewhere/{library.file}{found}"
    openable |= {path, library.file}
    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.load_nvidia_dynamic_lib = (  # type: ignore[attr-defined]
        lambda name: SimpleNamespace(abs_path=path if name == library.name else None)
    )
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    assert library.load() == (path if used else library.file)


@each_library
def test_the_real_pathfinder(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")
    assert issubclass(pathfinder.DynamicLibNotFoundError, RuntimeError)
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    found = toolkit.by_pathfinder(library.name)
    assert found is None or library.name in found
    assert toolkit.by_pathfinder("nothing") is None
