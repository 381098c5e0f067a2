"""The error function and its complement, held to Python's own, which are C's."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from mirrored import ops

FAR = np.linspace(-7.0, 27.0, 1501)
NEAR = np.concatenate([FAR / 30.0, 10.0 ** np.linspace(-300.0, -1.0, 100), [0.5, -0.5, 0.0]])


@pytest.mark.parametrize(
    ("function", "exact", "places"),
    [(ops.erf, math.erf, 2), (ops.erfc, math.erfc, 4)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_places(
    function: Callable[..., ops.Tensor], exact: Callable[[float], float], places: int, dtype: str
) -> None:
    """Off by a few units in the last place, or as little as numbers below the normal ones are."""
    x = np.concatenate([NEAR, FAR]).astype(dtype)
    right = np.array([exact(float(each)) for each in x])
    unit = np.spacing(np.abs(right).astype(dtype)).astype("float64")
    wrong = np.abs(function(x).numpy().astype("float64") - right) / unit
    assert wrong.max() <= places + (dtype == "float32") * 1.5


def test_the_ends() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300])
    erf, erfc = ops.erf(x).numpy(), ops.erfc(x).numpy()
    np.testing.assert_array_equal(erf, [0.0, -0.0, 1.0, -1.0, np.nan, 1.0, -1.0])
    np.testing.assert_array_equal(erfc, [1.0, 1.0, 0.0, 2.0, np.nan, 0.0, 2.0])
    assert np.signbit(erf[1])
