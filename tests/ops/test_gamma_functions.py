"""The logarithm of gamma and its derivatives, of every order, to the last digits of a double."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

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
