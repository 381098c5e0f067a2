"""The inverses of the error functions and of the normal distribution, held to Python's own."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
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


FAR = np.linspace(-7.0, 27.0, 1501)
NEAR = np.concatenate([FAR / 30.0, 10.0 ** np.linspace(-300.0, -1.0, 100), [0.5, -0.5, 0.0]])


@cases(
    ("function", "exact", "places"),
    [(ops.erf, math.erf, 2), (ops.erfc, math.erfc, 4)],
)
@cases("dtype", ["float32", "float64"])
def test_the_last_places_of_error_functions(
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


X = [0.1, 0.5, 1.0, 2.5, 10.0, 50.0, -0.3, -1.5, -2.2, -7.7]
# What TensorFlow 2.21 gives in float64: digamma, and its three derivatives.
TENSORFLOW = [
    *([-10.4237549404, -1.963510026, -0.5772156649, 0.7031566406, 2.2517525891, 3.9019896734],),
    *([101.4332991508, 4.9348022005, 1.6449340668, 0.4903577561, 0.1051663357, 0.0202013332],),
    *([-2001.8614573783, -16.8287966442, -2.4041138063, -0.2362040516, -0.011049835, -0.00040808],),
    *([60004.5128767902, 97.409091034, 6.4939394023, 0.2239058488, 0.0023199013, 1.64864e-05],),
]
BELOW = [
    [2.1133097796, 0.7031566406, 5.3228702212, -0.1777484437],
    [13.9451602678, 9.379246645, 28.2005301522, 14.9576128449],
    [67.6390811999, -0.2362040516, 246.9151203992, -68.8523609917],
    [766.6198904192, 194.5942762192, 3768.5205406348, 769.0173136216],
]


def derivatives(count: int) -> list[Any]:
    x = mr.constant(np.array(X))
    found = [mr.math.digamma]

    def derivative(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def slope(x: Any) -> Any:
            with mr.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return slope

    for _ in range(count):
        found.append(derivative(found[-1]))
    return [each(x).numpy() for each in found]


def test_derivatives_of_every_order() -> None:
    for found, above, below in zip(derivatives(3), TENSORFLOW, BELOW, strict=True):
        np.testing.assert_allclose(found, [*above, *below], rtol=1e-10, atol=1e-10)


def test_near_the_zeros_no_digit_is_lost() -> None:
    """Beside 1 and 2 the first terms of the series are all that is left."""
    steps = np.array([1e-3, -1e-5, 1e-8, -1e-12])
    euler = 0.5772156649015329
    for zero, slope in [(1.0, -euler), (2.0, 1.0 - euler)]:
        given = (zero + steps) - zero  # As they are left beside it.
        curve = (math.pi**2 / 6 - (zero - 1.0)) / 2
        found = mr.math.lgamma(zero + steps).numpy()
        np.testing.assert_allclose(found[1:], (slope * given + curve * given**2)[1:], rtol=1e-9)
        assert float(mr.math.lgamma(np.float64(zero))) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_sizes(dtype: str) -> None:
    x = np.random.default_rng(0).uniform(1e-6, 200.0, 2000).astype(dtype)
    found = mr.math.lgamma(x).numpy()
    rtol = 1e-12 if dtype == "float64" else 3e-7
    np.testing.assert_allclose(found, [math.lgamma(each) for each in x], rtol=rtol, atol=1e-14)


def test_beta() -> None:
    """TensorFlow 2.21's numbers."""
    x = mr.constant([1.0, 2.0, 0.5])
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = mr.math.lbeta(x)
    slope = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(slope, [-1.6803727, -0.6803726, -3.0666676], rtol=1e-6)
    found = mr.math.lbeta(np.array([0.5, 0.5, 2.0])).numpy()
    np.testing.assert_allclose(found, 0.4515827052894549, rtol=1e-14)
    found = [mr.math.lbeta(each).numpy().tolist() for each in (mr.zeros((2, 0)), mr.zeros((0, 2)))]
    assert found == [[-math.inf, -math.inf], []]
    for wrong in (1.0, [1, 2], [True]):
        with pytest.raises(mr.errors.InvalidArgumentError):
            mr.math.lbeta(wrong)


@pytest.mark.slow
def test_beside_a_card(emulated_cuda: Callable[..., Any]) -> None:
    """The host computes it, and the card what comes before and behind."""
    emulated_cuda()
    x = mr.constant([0.5, 1.5, 3.0]) * 2.0
    assert mr.math.lgamma(x).device.endswith("CPU:0")
    np.testing.assert_allclose(mr.math.lgamma(x).numpy(), [0.0, 0.6931472, 4.787492], rtol=1e-6)
