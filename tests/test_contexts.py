"""Context variables within a block, and after it."""

from contextvars import ContextVar

import pytest

from mirrored._contexts import Within

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
