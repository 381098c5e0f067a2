"""Every op for the tests here: a row of the table, its small cases, and memory full of nonsense.

A test with a parameter `op_row` runs for each op, one with `op_case` for each of its small cases.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from op_table import TABLE, Row

from mirrored.backends import HostBackend, Storage


def small_cases() -> Iterator[Any]:
    """Yield (name, row, case) for each small case of each op."""
    for name, row in TABLE.items():
        for case in row.small:
            yield pytest.param((name, row, case), id=f"{name}-{case!r}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `op_row` or `op_case` once for each."""
    if "op_row_of_two" in metafunc.fixturenames:
        # Not of one input, nor of labels; and gradients' ops are called by rules alone.
        rows = [
            (name, each)
            for name, each in TABLE.items()
            if len(each.small[0].shapes) > 1
            and "labels" not in each.kinds
            and not name.endswith("Grad")
        ]
        metafunc.parametrize("op_row_of_two", rows, ids=[name for name, _ in rows])
    if "op_row" in metafunc.fixturenames:
        rows = [pytest.param((name, row), id=name) for name, row in TABLE.items()]
        metafunc.parametrize("op_row", rows)
    if "op_case" in metafunc.fixturenames:
        metafunc.parametrize("op_case", list(small_cases()))


@pytest.fixture
def table() -> Mapping[str, Row]:
    """Return the table."""
    return TABLE


@pytest.fixture(autouse=True)
def garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand out memory full of NaN and nonsense: a kernel has to write all of its output."""
    allocate = HostBackend.allocate

    def filled(self: HostBackend, *args: Any) -> Storage:
        storage = allocate(self, *args)
        kind = storage.array.dtype.kind
        # The memory of programs is bytes, of which eight or four of these are NaN.
        nonsense = {"f": math.nan, "V": math.nan, "i": -123456789, "b": True, "u": 255}
        storage.array.fill(nonsense[kind])
        return storage

    monkeypatch.setattr(HostBackend, "allocate", filled)
