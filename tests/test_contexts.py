"""Context variables within a block, and after it."""

import gc
from contextvars import ContextVar

import pytest
from case_table import cases

from mirrored._contexts import Within, without_collector

variable: ContextVar[int] = ContextVar("variable", default=0)


def test_the_value_is_that_of_the_innermost_block() -> None:
    seen = []
    with Within(variable, 1):
        with Within(variable, 2):
            seen.append(variable.get())
        seen.append(variable.get())
    assert [*seen, variable.get()] == [2, 1, 0]


def test_an_exception_passes_and_leaves_the_value_before() -> None:
    with pytest.raises(KeyError), Within(variable, 1):
        raise KeyError
    assert variable.get() == 0


@cases("collects", [True, False])
def test_the_collector_waits_and_is_as_it_was_afterwards(collects: bool) -> None:
    try:
        (gc.enable if collects else gc.disable)()
        with without_collector(), without_collector():
            assert not gc.isenabled()
        assert gc.isenabled() == collects
    finally:
        gc.enable()
