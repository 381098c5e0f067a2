"""Kernels are compiled with our options alone, and kept on disk by card and text."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.backends.cuda import compiling
from mirrored.backends.cuda.compiling import OPTIONS, Modules, source

HALF = """
extern "C" __global__ void half(T *out, const T *x) { store(out[0], load(x[0]) * 0.5f); }
"""
TEXT = source("tests of compiling", HALF, T=np.dtype(np.float32))
HOPPER, ADA = (9, 0), (8, 9)

# Below the smallest normal number of float32, which is 1.2e-38; 1e-45 becomes the smallest of all.
SUBNORMAL = np.array([1e-40, -1e-40, 1e-45, -1e-45, 0.0, 1.0], np.float32)
OPS_OF_ONE = ("Abs", "Log", "Neg", "Relu", "Sign", "Sqrt", "Tanh", "IsFinite")


def both(name: str, *arrays: Any, **attrs: Any) -> list[Any]:
    """Return an op's result on the card, and on the host."""
    results = []
    for device in ("GPU:0", "CPU:0"):
        with mr.device(device), np.errstate(all="ignore"):
            results.append(ops.OPS[name](*map(ops.constant, arrays), **attrs).numpy())
    return results


@pytest.mark.usefixtures("card")
@cases("name", OPS_OF_ONE, clean=False)
def test_what_is_below_the_normal_numbers_is_not_zero(name: str) -> None:
    found, expected = both(name, SUBNORMAL)
    np.testing.assert_allclose(found, expected, 1e-6, 1e-44)
    signs = [np.signbit(each[~np.isnan(each)]).tolist() for each in (found, expected)]
    assert signs[0] == signs[1]
    assert (found == 0).tolist() == (expected == 0).tolist()


@pytest.mark.usefixtures("card")
@cases("name", ["Greater", "Equal", "LessEqual", "Maximum", "Sub"], clean=False)
def test_it_is_compared_and_subtracted_as_on_the_host(name: str) -> None:
    found, expected = both(name, SUBNORMAL, SUBNORMAL[::-1].copy())
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("dtype", [mr.bool, mr.float64])
def test_it_is_cast_as_on_the_host(dtype: Any) -> None:
    found, expected = both("Cast", SUBNORMAL, dtype=dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_cupy_compiles_with_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one, for a card that is not here: no instruction flushes what is not normal."""
    compiler = pytest.importorskip("cupy.cuda.compiler")
    try:
        compiler.nvrtc.getVersion()
    except RuntimeError:
        pytest.skip("NVRTC is not here.")
    chosen = ("-arch=compute_90", "ptx")
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch: chosen)
    made, _ = compiler.compile_using_nvrtc(TEXT.code, OPTIONS, cache_in_memory=True)
    assert b"mul.rn.f32" in made
    flushing = (*OPTIONS, "-ftz=true")  # As `RawModule` does.
    other, _ = compiler.compile_using_nvrtc(TEXT.code, flushing, cache_in_memory=True)
    assert b"mul.rn.ftz.f32" in other


class Kept:
    """Processes that keep what they compile in one folder, and what each of them compiled."""

    def __init__(self, cupy: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.compiled = 0
        self._cupy = cupy
        self._patch = monkeypatch
        self._compile = cupy.cuda.compiler.compile_using_nvrtc
        monkeypatch.setattr(cupy.cuda.compiler, "compile_using_nvrtc", self._count)

    def process(self, text: Any = TEXT, capability: tuple[int, int] = HOPPER) -> int:
        """Let a new process load a kernel; return how many texts it compiled."""
        self._patch.setattr(compiling, "_compiled", {})
        before = self.compiled
        modules = Modules(self._cupy, capability)
        for _ in range(2):
            modules.kernel(text, "half")
        Modules(self._cupy, capability).kernel(text, "half")  # That of another stream.
        return self.compiled - before

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.rglob("*.*"))

    def _count(self, *args: Any, **options: Any) -> Any:
        self.compiled += 1
        return self._compile(*args, **options)


@pytest.fixture
def kept(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Kept]:
    cupy = emulated_cuda().cupy
    monkeypatch.setenv(compiling.FOLDER, str(tmp_path / "kernels"))
    with cupy.cuda.Device(0):
        yield Kept(cupy, monkeypatch, tmp_path / "kernels")


def test_a_text_is_compiled_once_for_all_processes(kept: Kept) -> None:
    assert [kept.process() for _ in range(3)] == [1, 0, 0]
    assert [path.suffix for path in kept.files] == [".cubin"]


def test_each_text_and_each_kind_of_card_has_its_own(kept: Kept) -> None:
    other = source("another", f"{HALF}//", T=np.dtype(np.float32))
    each = [(TEXT, HOPPER), (TEXT, ADA), (other, HOPPER)]
    assert [kept.process(*args) for args in (*each, *each)] == [1, 1, 1, 0, 0, 0]
    assert len(kept.files) == 3


@pytest.mark.parametrize("stored", [b"", b"\x00" * 40, None], ids=["empty", "other", "cut off"])
def test_a_damaged_file_is_written_anew(stored: bytes | None, kept: Kept) -> None:
    kept.process()
    (path,) = kept.files
    path.write_bytes(path.read_bytes()[:-1] if stored is None else stored)
    assert [kept.process(), kept.process()] == [1, 0]


def test_no_folder_is_needed(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(compiling.FOLDER, "")
    assert [kept.process(), kept.process()] == [1, 1]
    (tmp_path / "file").touch()
    monkeypatch.setenv(compiling.FOLDER, str(tmp_path / "file" / "kernels"))
    with caplog.at_level("DEBUG", "mirrored"):
        assert kept.process() == 1
    assert "was not kept for the next process" in caplog.text


@pytest.mark.usefixtures("kept")
def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(compiling.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiling.cache_folder() == tmp_path / "mirrored" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert compiling.cache_folder() == tmp_path / ".cache" / "mirrored" / "kernels"
