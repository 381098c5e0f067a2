"""CUDA's errors are told apart by their status, and other errors pass."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import ModuleType
from typing import Any

import pytest

from mirrored.backends import OutOfPoolMemory
from mirrored.backends.cuda import current_card
from mirrored.backends.cuda.current_card import Entered, translated
from mirrored.errors import DeviceLostError

RUNTIME, DRIVER = "cupy_backends.cuda.api.runtime", "cupy_backends.cuda.api.driver"
WHERE = "NVIDIA H200 at 0000:01:00.0"


class CudaError(RuntimeError):
    """As CuPy's: a text that begins with the status's name, and the status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaErrorNumber{status}: it went wrong")
        self.status = status


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put modules in the place of CuPy's that define its errors."""
    for name, error in ((RUNTIME, "CUDARuntimeError"), (DRIVER, "CUDADriverError")):
        module = ModuleType(name)
        setattr(module, error, type(error, (CudaError,), {}))
        monkeypatch.setitem(sys.modules, name, module)
    memory = ModuleType("cupy.cuda.memory")
    memory.OutOfMemoryError = type("OutOfMemoryError", (MemoryError,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy.cuda.memory", memory)


def raised(module: str, status: int) -> Exception:
    name = "CUDARuntimeError" if module == RUNTIME else "CUDADriverError"
    error: Exception = getattr(sys.modules[module], name)(status)
    return error


def test_nothing_raised() -> None:
    with translated(WHERE):
        pass


@pytest.mark.parametrize(
    "context",
    [
        lambda: translated(WHERE),
        lambda: Entered(WHERE, nullcontext(), threading.RLock()),
    ],
    ids=["translated", "entered"],
)
def test_what_failed_keeps_nothing(context: Callable[[], Any]) -> None:
    """What a function that failed had, such as arrays, goes with the error."""

    class Held:
        pass

    def fail(held: Held) -> None:
        with context():
            raise raised(RUNTIME, 1)

    held = Held()
    kept = weakref.ref(held)
    gc.disable()
    try:
        with suppress(RuntimeError):
            fail(held)
        del held
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("module", [RUNTIME, DRIVER])
def test_too_little_memory(module: str) -> None:
    with pytest.raises(OutOfPoolMemory) as error, translated(WHERE, asked=4096):
        raise raised(module, 2)
    assert (error.value.asked, error.value.pool) == (4096, None)


def test_a_full_pool_of_cupy_s() -> None:
    with pytest.raises(OutOfPoolMemory) as error, translated(WHERE, asked=12):
        raise sys.modules["cupy.cuda.memory"].OutOfMemoryError
    assert (error.value.asked, error.value.pool) == (12, None)


@pytest.mark.behaviour("device-lost")
@pytest.mark.parametrize("module", [RUNTIME, DRIVER])
@pytest.mark.parametrize(
    "status", [214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999]
)
def test_a_lost_device(module: str, status: int) -> None:
    with pytest.raises(DeviceLostError) as error, translated(WHERE):
        raise raised(module, status)
    text = str(error.value)
    assert text.startswith(f"{WHERE} failed, and this process cannot use it any more.")
    assert f"Received: cudaErrorNumber{status}: it went wrong." in text
    assert "End the process" in text
    assert "data on the host" in text
    assert "can still be saved" in text
    assert isinstance(error.value.__cause__, CudaError)


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (1, "please report it with the output of `python -m mirrored devices`"),
        (3, "method 'spawn'"),
        (46, "nvidia-smi"),
        (101, "CUDA_VISIBLE_DEVICES"),
        (709, "please report it"),
        (803, "restart it"),
        (900, "please report it"),
    ],
)
def test_other_errors(status: int, hint: str) -> None:
    with pytest.raises(RuntimeError) as error, translated(WHERE):
        raise raised(RUNTIME, status)
    assert type(error.value) is RuntimeError
    assert str(error.value).startswith(f"{WHERE} refused an operation. Received: cudaE")
    assert hint in str(error.value)
    assert hint in current_card.advice(status)


def test_inside_itself_an_error_is_translated_once() -> None:
    where = translated(WHERE)
    with pytest.raises(DeviceLostError) as error, translated("another"), where, where:
        raise raised(RUNTIME, 700)
    assert str(error.value).startswith(WHERE)


@pytest.mark.parametrize("kind", [ValueError, MemoryError, KeyboardInterrupt, CudaError])
def test_errors_that_are_not_cuda_s_pass(kind: type[BaseException]) -> None:
    given = kind(700)
    with pytest.raises(kind) as error, translated(WHERE):
        raise given
    assert error.value is given


def test_cupy_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (RUNTIME, DRIVER, "cupy.cuda.memory", "cupy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(CudaError), translated(WHERE):
        raise CudaError(700)
    assert "cupy" not in sys.modules


def test_the_real_cupy_s_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their classes are where they are looked for, and have a status."""
    monkeypatch.undo()
    pytest.importorskip("cupy")
    for module, name in ((RUNTIME, "CUDARuntimeError"), (DRIVER, "CUDADriverError")):
        kind = getattr(sys.modules[module], name)
        error = kind.__new__(kind)  # Its constructor asks the driver for the text.
        error.status = 700
        with pytest.raises(DeviceLostError), translated(WHERE):
            raise error
    with pytest.raises(OutOfPoolMemory), translated(WHERE):
        raise sys.modules["cupy.cuda.memory"].OutOfMemoryError(1, 2, 3)
