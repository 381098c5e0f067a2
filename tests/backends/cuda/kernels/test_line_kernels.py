"""Orders of hard values on the emulated card, which are the host's."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

NAN, INF = np.nan, np.inf
FLOATS = [1.0, NAN, 0.0, -INF, -0.0, 1.0, -NAN, INF, -1e-40, 1e-40, 0.0, 3e38]
INTEGERS = [3, -(2**31), 2**31 - 1, 0, -1, 3, 2**31 - 1, 0]


@cases("ascending", [False, True], clean=False)
@cases("values", [np.array(FLOATS, np.float32), np.array(INTEGERS, np.int32)], clean=False)
def test_places_in_order(card: Any, values: Any, ascending: bool) -> None:
    x = np.stack([values, values[::-1], np.roll(values, 5)])
    for k in (1, 3, x.shape[1]):
        attrs = {"k": k, "ascending": ascending, "output_type": np.dtype(np.int32)}
        found, expected = card.both("TopKV2", x, **attrs)
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["LowerBound", "UpperBound"])
def test_rows_that_are_in_no_order(card: Any, name: str) -> None:
    """The search goes the same way as on the host, and ends at the same place."""
    values = np.array([FLOATS, FLOATS[::-1]])
    rows = np.array([[-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN], [3.0, 1.0, NAN, 2.0, 0.0, -INF, 1.0]])
    found, expected = card.both(name, rows, values, output_type=np.dtype(np.int64))
    assert found.tolist() == expected.tolist()
