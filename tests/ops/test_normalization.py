"""Normalization by given moments, beside NumPy."""

from typing import Any

import numpy as np
import pytest

from mirrored import ops

X = np.random.default_rng(1).normal(2.0, 3.0, (20, 4))
ROW = np.array([1.0, 2.0, -0.5, 0.25])


@pytest.mark.parametrize("offset", [None, ROW])
@pytest.mark.parametrize("scale", [None, ROW[::-1].copy()])
def test_batches(offset: Any, scale: Any) -> None:
    mean, variance = ops.moments(X, [0])
    found = ops.batch_normalization(X, mean, variance, offset, scale, 0.1).numpy()
    expected = (X - X.mean(0)) / np.sqrt(X.var(0) + 0.1)
    expected = expected * (1.0 if scale is None else scale) + (0.0 if offset is None else offset)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shift", [None, ROW])
def test_moments_of_sums(shift: Any) -> None:
    apart = X if shift is None else X - shift
    mean, variance = ops.normalize_moments(np.float64(20.0), apart.sum(0), (apart**2).sum(0), shift)
    np.testing.assert_allclose(mean.numpy(), X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance.numpy(), X.var(0), rtol=1e-12)
