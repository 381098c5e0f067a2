"""What counts as a number wherever one is asked for."""

import re
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored._numbers import as_integer, as_positive, as_real, in_units


@cases("value", [0, -3, np.int8(-3), np.uint64(3), np.array(3), 2**70])
def test_integers(value: Any) -> None:
    number = as_integer(value)
    assert number == int(value)
    assert type(number) is int


@cases("value", [True, np.True_, 3.0, np.float32(3), "3", None, [3], np.ones(1)])
def test_everything_else(value: Any) -> None:
    assert as_integer(value) is None


@pytest.mark.parametrize("value", [1, np.int64(7)])
def test_positive_integers_pass(value: Any) -> None:
    number = as_positive("units", value)
    assert number == int(value)
    assert type(number) is int


@pytest.mark.behaviour("batch-size-zero")
@cases("value", [0, np.int64(0), -1, 2.5, np.float32(4), True, np.True_, "3", None])
def test_other_sizes_are_refused(value: object) -> None:
    text = (
        "Received an invalid value for `units`, expected a positive integer. "
        f"Received: units={value!r}"
    )
    with pytest.raises(ValueError, match=re.escape(text)) as refused:
        as_positive("units", value)
    assert ("`//`" in str(refused.value)) == isinstance(value, float | np.floating)


@cases(
    ("value", "expected"),
    [(3, 3.0), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int64(2), 2.0)]
    + [(other, None) for other in (True, "3", None, 1j, [1.0])],
)
def test_only_real_numbers_become_floats(value: object, expected: float | None) -> None:
    assert as_real(value) == expected


@cases(
    ("nbytes", "units", "least", "expected"),
    [
        (1 << 20, ["MB"], 1.0, "1.0 MB"),
        ((1 << 20) - 1, ["MB"], 1.0, None),
        ((1 << 20) - 1, ["MB", "KB"], 1.0, "1024.0 KB"),
        (104858, ["MB", "KB"], 0.1, "0.1 MB"),
        (104857, ["MB", "KB"], 0.1, "102.4 KB"),
        (102, ["MB", "KB"], 0.1, None),
        (5 << 40, ["GB", "MB"], 1.0, "5120.0 GB"),
        (0, ["KB"], 1.0, None),
    ],
)
def test_bytes_in_units(nbytes: int, units: list[str], least: float, expected: str | None) -> None:
    assert in_units(nbytes, units, least) == expected
