"""Where NVIDIA's libraries are found, for each that is used through ctypes."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from mirrored.backends.cuda import blas, libraries, nccl, nvml, toolkit
from mirrored.errors import DeviceUnavailableError


class Library(NamedTuple):
    """What finds a library, its name for cuda-pathfinder, and its file's."""

    load: Callable[[], Any]
    name: str
    file: str
    folder: str


LIBRARIES = {
    "cublas": Library(blas.load, "cublas", "libcublas.so.12", "nvidia/cublas/lib"),
    "cublas of a package for all": Library(
        blas.load, "cublas", "libcublas.so.12", "nvidia/cu12/lib"
    ),
    "nccl": Library(nccl.load, "nccl", "libnccl.so.2", "nvidia/nccl/lib"),
}
each_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


class Files:
    """Files of libraries below a folder, and what is opened of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.opened: list[str] = []
        self.of_the_system: set[str] = set()
        monkeypatch.setattr(ctypes, "CDLL", self._open)

    def add(self, *parts: str) -> Path:
        path = self.root.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    def _open(self, name: str) -> str:
        there = Path(name).is_file() if "/" in name else name in self.of_the_system
        if not there:
            raise OSError(f"{name}: cannot open shared object file")
        self.opened.append(name)
        return name


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Files:
    """A machine with CuPy for CUDA 12, and no libraries."""
    runtime = SimpleNamespace(runtimeGetVersion=lambda: 12090)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(toolkit, "toolkit", lambda: cupy)
    monkeypatch.setattr(toolkit, "_packages", lambda: ["cupy-cuda12x"])
    nvidia = SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: nvidia)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Files(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (LIBRARIES["cublas"], r"cuBLAS for CUDA 12, libcublas\.so\.12, was not found"),
        (LIBRARIES["nccl"], r"NCCL cannot be used: libnccl\.so\.2 was not found"),
    ],
)
def test_no_library(library: Library, said: str, files: Files) -> None:
    files.add(library.folder, library.file.rpartition(".")[0] + ".99")
    with pytest.raises(DeviceUnavailableError, match=said) as error:
        library.load()
    assert str(error.value).endswith(toolkit.install_command(12))


def test_nccl_is_looked_for_without_cupy(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA would be started, which the question whether there is an NCCL must not do."""
    monkeypatch.setattr(toolkit, "toolkit", lambda: pytest.fail("CuPy was imported."))
    monkeypatch.setattr(toolkit, "_packages", list)
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cuda=(13, 0)))
    with pytest.raises(DeviceUnavailableError, match=r"'\.\[cuda13\]'"):
        nccl.load()


@pytest.mark.parametrize("variable", [None, "CUDA_PATH", "CUDA_HOME"])
@each_library
def test_a_package_s_library_comes_first(
    monkeypatch: pytest.MonkeyPatch, files: Files, library: Library, variable: str | None
) -> None:
    expected = files.add(library.folder, library.file)
    files.add("cuda/lib64", library.file)
    if variable is not None:
        monkeypatch.setenv(variable, str(files.root / "cuda"))
    files.of_the_system.add(library.file)
    assert library.load() == str(expected)


def test_what_it_is_linked_to_is_opened_before(files: Files) -> None:
    expected = files.add("nvidia/cublas/lib/libcublas.so.12")
    beside = files.add("nvidia/cublas/lib/libcublasLt.so.12")
    blas.load()
    assert files.opened == [str(beside), str(expected)]


@pytest.mark.parametrize("folder", ["lib", "lib64"])
@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME"])
@each_library
def test_a_toolkit_s_library(
    monkeypatch: pytest.MonkeyPatch, files: Files, library: Library, variable: str, folder: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv(variable, str(files.root))
    expected = files.add(folder, library.file)
    files.of_the_system.add(library.file)
    assert library.load() == str(expected)


@each_library
def test_the_system_s_library(files: Files, library: Library) -> None:
    files.of_the_system.add(library.file)
    assert library.load() == library.file


@pytest.mark.parametrize(("found", "used"), [("", True), (".9.1.4", True), ("3", False)])
@each_library
def test_what_pathfinder_finds_is_of_the_version(
    monkeypatch: pytest.MonkeyPatch, files: Files, library: Library, found: str, used: bool
) -> None:
    path = files.add("elsewhere", library.file + found)
    files.of_the_system.add(library.file)
    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.load_nvidia_dynamic_lib = (  # type: ignore[attr-defined]
        lambda name: SimpleNamespace(abs_path=str(path) if name == library.name else None)
    )
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    assert library.load() == (str(path) if used else library.file)


@each_library
def test_the_real_pathfinder(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")
    assert issubclass(pathfinder.DynamicLibNotFoundError, RuntimeError)
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    found = libraries.by_pathfinder(library.name)
    assert found is None or library.name in found
    assert libraries.by_pathfinder("nothing") is None
