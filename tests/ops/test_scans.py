"""Scans, by their public names; `test_every_op` has their values and gradients."""

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError


def test_a_sum_begins_at_zero() -> None:
    assert np.signbit(ops.cumsum([-0.0, -0.0]).numpy()).tolist() == [False, False]
    assert np.signbit(ops.cumprod([-0.0, -0.0]).numpy()).tolist() == [True, False]


def test_what_comes_before_all() -> None:
    x = ops.constant([[1.0], [2.0]])
    for scan, neutral in (
        (ops.cumsum, 0.0),
        (ops.cumprod, 1.0),
        (ops.cumulative_logsumexp, -np.inf),
    ):
        assert scan(x, exclusive=True).numpy().tolist() == [[neutral], [1.0]]
        assert scan(x, exclusive=True, reverse=True).numpy().tolist() == [[2.0], [neutral]]
        assert scan(x, axis=1, exclusive=True).numpy().tolist() == [[neutral], [neutral]]


def test_nan_and_infinity_stay() -> None:
    x = [-np.inf, 1.0, np.inf, np.inf, np.nan, 1.0]
    expected = [-np.inf, 1.0, np.inf, np.inf, np.nan, np.nan]
    np.testing.assert_array_equal(ops.cumulative_logsumexp(x).numpy(), expected)


def test_signs_of_what_flows_back() -> None:
    """The two parts are taken by their logarithms, and neither one hides the other."""
    x = ops.constant(np.array([0.5, 1000.0, -1000.0, 999.0]))
    flow = np.array([1.0, -2.0, 3.0, -1e-3])
    with mr.GradientTape() as tape:
        tape.watch(x)
        result = ops.cumulative_logsumexp(x)
    found = tape.gradient(result, x, flow).numpy()
    apart = x.numpy() - result.numpy()[:, None]
    shares = np.tril(np.exp(np.minimum(apart, 0.0)))
    np.testing.assert_allclose(found, flow @ shares, rtol=1e-12)


def test_what_does_not_fit() -> None:
    for axis in (2, -3):
        with pytest.raises(InvalidArgumentError, match=r"scan axis in the range \[-2, 2\), but"):
            ops.cumsum([[1]], axis)
    with pytest.raises(InvalidArgumentError, match=r"\[0, 0\), but got 0 \[Op:Cumprod\]"):
        ops.cumprod(3.0)
    with pytest.raises(TypeError):
        ops.cumsum([1], [0])
    with pytest.raises(InvalidArgumentError, match="attr 'T' of int32"):
        ops.cumulative_logsumexp([1])
