"""The inverses of the error functions and of the normal distribution, held to Python's own."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from mirrored import ops

NORMAL = NormalDist()


@pytest.mark.parametrize(("dtype", "least"), [("float32", -36.0), ("float64", -300.0)])
def test_the_last_places(dtype: str, least: float) -> None:
    """Of the middle and of both tails, down to the smallest numbers."""
    p = np.concatenate([np.linspace(1e-3, 0.999, 400), 10.0 ** np.linspace(least, -3.0, 200)])
    p = p.astype(dtype)
    expected = np.array([NORMAL.inv_cdf(float(each)) for each in p])
    epsilon = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(ops.ndtri(p).numpy(), expected, rtol=epsilon)
    found = ops.erfcinv(2 * p).numpy()
    np.testing.assert_allclose(found, -expected / math.sqrt(2.0), rtol=1.5 * epsilon)
    # Down to 0 the digits of a number stay, which 1 less it has not.
    x = np.concatenate([p, -p])
    back = np.array([math.erf(each) for each in ops.erfinv(x).numpy().tolist()])
    np.testing.assert_allclose(back, x, rtol=epsilon)


def test_the_ends_and_what_is_beyond() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([-1.5, -1.0, -0.0, 0.0, 1.0, 2.0, 2.5, nan, inf])
    np.testing.assert_array_equal(ops.ndtri(x).numpy(), [nan, nan, -inf, -inf, inf, *[nan] * 4])
    erfinv = ops.erfinv(x).numpy()
    np.testing.assert_array_equal(erfinv, [nan, -inf, 0.0, 0.0, inf, *[nan] * 4])
    assert np.signbit(erfinv[2:4]).tolist() == [True, False]
    np.testing.assert_array_equal(
        ops.erfcinv(x).numpy(), [nan, nan, inf, inf, 0.0, -inf, nan, nan, nan]
    )
