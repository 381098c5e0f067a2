"""Checks of numbers."""

import re
from typing import Any

import numpy as np
import pytest

from mirrored.layers import checks


@pytest.mark.parametrize("value", [1, np.int64(7)])
def test_positive_integers_pass(value: Any) -> None:
    assert checks.as_positive("units", value) == int(value)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3", None])
def test_other_sizes_are_refused(value: object) -> None:
    text = (
        "Received an invalid value for `units`, expected a positive integer. "
        f"Received: units={value}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        checks.as_positive("units", value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3.0), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int64(2), 2.0)]
    + [(other, None) for other in (True, "3", None, 1j, [1.0])],
)
def test_only_real_numbers_become_floats(value: object, expected: float | None) -> None:
    assert checks.as_real(value) == expected
