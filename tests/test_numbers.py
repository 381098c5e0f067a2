"""What counts as a whole number wherever one is asked for."""

from typing import Any

import numpy as np
import pytest

from mirrored._numbers import as_integer


@pytest.mark.parametrize("value", [0, -3, np.int8(-3), np.uint64(3), np.array(3), 2**70])
def test_integers(value: Any) -> None:
    number = as_integer(value)
    assert number == int(value)
    assert type(number) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float32(3), "3", None, [3], np.ones(1)])
def test_everything_else(value: Any) -> None:
    assert as_integer(value) is None
