"""Every op for the tests here: a row of the table, its small cases, and memory full of nonsense.

A test with a parameter `op_row` goes through some ops, for each of which its function is called;
with `op_case` it is called for each of their small cases.
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


_TOGETHER = 8  # Ops that one test goes through, since pytest takes longer to set up a test.


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a function for ops one after another, or their small cases; an error names the op."""
    (parameter,) = {"op_row", "op_case"}.intersection(pyfuncitem.funcargs) or {None}
    if parameter is None:
        return None
    reset = pyfuncitem._request.getfixturevalue("reset")
    arguments = {
        name: value
        for name, value in pyfuncitem.funcargs.items()
        if name in _parameters(pyfuncitem.obj)
    }
    for name, row in arguments[parameter]:
        reset()
        cases = row.small if parameter == "op_case" else [None]
        for case in cases:
            argument = (name, row) if case is None else (name, row, case)
            try:
                pyfuncitem.obj(**{**arguments, parameter: argument})
            except Exception as error:
                where = "" if case is None else f" of {case!r} {dict(case.attrs)}"
                error.add_note(f"The case is {name}{where}.")
                raise
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `op_row` or `op_case` for all ops, some at a time."""
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
        often = [row for row in TABLE.items() if row[0] in OFTEN]
        others = [row for row in TABLE.items() if row[0] not in OFTEN]
        groups = [
            pytest.param(group, id="+".join(name for name, _ in group), marks=marks)
            for rows, marks in ((often, []), (others, seldom))
            for group in (rows[i : i + _TOGETHER] for i in range(0, len(rows), _TOGETHER))
        ]
        metafunc.parametrize(each, groups)


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
