"""Scans on the emulated card, which round as the host's do."""

from typing import Any

import numpy as np
from case_table import cases

INF, NAN = np.inf, np.nan
X = np.array([[1.5, -INF, 1e-30, NAN], [-INF, INF, 3e38, 1.0], [-0.0, INF, 3e38, -2.0]], np.float32)


@cases("name", ["Cumsum", "Cumprod", "CumulativeLogsumexp"], clean=False)
def test_hard_values(card: Any, name: str) -> None:
    attrs = {"axis": 0, "exclusive": True, "reverse": name == "Cumprod"}
    with np.errstate(all="ignore"):
        found, expected = card.both(name, X, **attrs)
    np.testing.assert_allclose(found, expected, rtol=2e-7 if "log" in name else 0)


@cases("name", ["Cumsum", "Cumprod"], clean=False)
@cases("dtype", ["int32", "int64", "uint8"], clean=False)
def test_integers_wrap(card: Any, name: str, dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (5, 40)).astype(dtype)
    found, expected = card.both(name, x, axis=1, exclusive=False, reverse=True)
    assert found.tolist() == expected.tolist()
