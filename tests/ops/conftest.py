"""Every op for the tests here: a row of the table, its small cases, and memory full of nonsense.

A test with a parameter `op_row` runs for each op, one with `op_case` for each op too, where its
function is called for each of the small cases.
"""

import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pytest
from op_row import Row
from op_table import OFTEN, TABLE

from mirrored.backends import HostBackend, Storage


@functools.cache
def _parameters(function: Callable[..., None]) -> Collection[str]:
    """Return the names of a test's parameters, which are the same for each op."""
    return inspect.signature(function).parameters.keys()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a function for each small case of an op; the error of one names it."""
    if "op_case" not in pyfuncitem.funcargs:
        return None
    arguments = {
        name: value
        for name, value in pyfuncitem.funcargs.items()
        if name in _parameters(pyfuncitem.obj)
    }
    name, row = arguments["op_case"]
    for case in row.small:
        try:
            pyfuncitem.obj(**{**arguments, "op_case": (name, row, case)})
        except Exception as error:
            error.add_note(f"The case is {name} of {case!r} {dict(case.attrs)}.")
            raise
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `op_row` or `op_case` once for each op."""
    if "op_row_of_two" in metafunc.fixturenames:
        # Not of one input, nor of labels; and gradients' ops are called by rules alone.
        rows = [
            (name, each)
            for name, each in TABLE.items()
            if len(each.small[0].shapes) > 1
            and not {"labels", "state"}.intersection(each.kinds)
            and not name.endswith("Grad")
        ]
        metafunc.parametrize("op_row_of_two", rows, ids=[name for name, _ in rows])
    for each in {"op_row", "op_case"}.intersection(metafunc.fixturenames):
        # Of an op that is not in `OFTEN` every run looks at what the file with the tests says in
        # `ALWAYS`; the rest is slow, as it says by `SELDOM`.
        most = metafunc.function.__name__ not in metafunc.module.ALWAYS
        seldom = [metafunc.module.SELDOM] if most else []
        rows = [
            pytest.param(row, id=row[0], marks=[] if row[0] in OFTEN else seldom)
            for row in TABLE.items()
        ]
        metafunc.parametrize(each, rows)


@pytest.fixture
def table() -> Mapping[str, Row]:
    """Return the table."""
    return TABLE


# The memory of programs is bytes, of which eight or four of these are NaN.
NONSENSE = {"f": math.nan, "V": math.nan, "i": -123456789, "b": True, "u": 255}


@functools.cache
def _nonsense(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.array(NONSENSE[dtype.kind]).astype(dtype)


@pytest.fixture(autouse=True)
def garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand out memory full of NaN and nonsense: a kernel has to write all of its output."""
    allocate = HostBackend.allocate

    def filled(self: HostBackend, *args: Any) -> Storage:
        storage = allocate(self, *args)
        storage.array.fill(_nonsense(storage.array.dtype))
        return storage

    monkeypatch.setattr(HostBackend, "allocate", filled)
