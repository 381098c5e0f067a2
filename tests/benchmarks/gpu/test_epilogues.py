"""What a card is asked about cublasLt: the real library, where it is, takes the descriptions."""

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.gpu.command import TESTS
from mirrored.backends.cuda import toolkit

KEPT = 1 << 20  # An address, which is looked at and not read.


@pytest.fixture
def scenario(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(TESTS / "scenarios"), *sys.path])
    import epilogues

    return epilogues


@pytest.fixture
def lt(scenario: Any) -> Any:
    library = toolkit.find("cublasLt", 12)
    if library is None:
        pytest.skip("no cublasLt is installed")
    made = scenario.Lt.__new__(scenario.Lt)  # A handle needs a card.
    made._library = library
    return made


def test_descriptions(scenario: Any, lt: Any) -> None:
    sizes = {scenario.TRANSPOSE_A: 4, scenario.EPILOGUE: 4, scenario.BIAS: 8, scenario.MASK_STEP: 8}
    for epilogue in scenario.EPILOGUES.values():
        wanted = dict(zip(sizes, (1, epilogue, KEPT, 2048), strict=True))
        kinds = ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int64
        values = zip(wanted.items(), kinds, strict=True)
        made = lt.description(77, {name: kind(value) for (name, value), kind in values})
        for name, value in wanted.items():
            assert read(lt, "MatmulDesc", made, name, sizes[name]) == value


def test_layouts_are_those_of_the_transposed(lt: Any) -> None:
    made = lt.layout(SimpleNamespace(shape=(512, 2048)), 14)
    sizes = {0: 4, 2: 8, 3: 8, 4: 8}  # The type, rows, columns, and the step between columns.
    found = [read(lt, "MatrixLayout", made, name, size) for name, size in sizes.items()]
    assert found == [14, 2048, 512, 2048]


def test_results_are_as_large_as_the_header_says(scenario: Any) -> None:
    assert ctypes.sizeof(scenario.Found) == 96


def read(lt: Any, kind: str, made: Any, attribute: int, size: int) -> int:
    value = ctypes.c_uint64()
    to, written = ctypes.byref(value), ctypes.byref(ctypes.c_size_t())
    function = f"cublasLt{kind}GetAttribute"
    lt.ask(function, made, ctypes.c_int(attribute), to, ctypes.c_size_t(size), written)
    return value.value
