"""Variances and counts over axes, by their public names."""

import math
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.array([[1.0, 0.0, 3.0], [-4.0, 0.0, 6.0]])


@cases("keepdims", [False, True])
@cases("axis", [None, 0, 1, (0, 1), [-1]])
def test_over_axes(axis: Any, keepdims: bool) -> None:
    axes = {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": keepdims}
    for found, expected in (
        (ops.reduce_variance(X, axis, keepdims), np.var(X, **axes)),
        (ops.reduce_std(X, axis, keepdims), np.std(X, **axes)),
        (ops.count_nonzero(X, axis, keepdims), np.count_nonzero(X, **axes)),
        (ops.reduce_all(X != 0, axis, keepdims), np.all(X != 0, **axes)),
        (ops.reduce_any(X > 3, axis, keepdims), np.any(X > 3, **axes)),
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)
        assert found.shape == np.shape(expected)


@cases("keepdims", [False, True])
@cases("axes", [0, [1], (0, 1)])
def test_moments(axes: Any, keepdims: bool) -> None:
    axis = tuple(axes) if isinstance(axes, list) else axes
    mean, variance = ops.moments(X, axes, keepdims=keepdims)
    for found, expected in (
        (mean, np.mean(X, axis, keepdims=keepdims)),
        (variance, np.var(X, axis, keepdims=keepdims)),
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)
        assert found.shape == np.shape(expected)


def test_dtypes() -> None:
    assert ops.count_nonzero([True, False], dtype="int32").dtype == ops.int32
    assert ops.count_nonzero([[0, 7]]).dtype == ops.int64
    with pytest.raises(TypeError, match="Received integer type int32"):
        ops.reduce_variance([1, 2])


@cases("keepdims", [False, True])
@cases("axes", [0, [1], (0, 1), None])
def test_weights_count_elements_several_times(axes: Any, keepdims: bool) -> None:
    weights = np.array([[1.0], [3.0]])
    axis = tuple(axes) if isinstance(axes, list) else axes
    mean, variance = ops.weighted_moments(X, axes, weights, keepdims)
    counts = {"weights": np.broadcast_to(weights, X.shape), "axis": axis, "keepdims": keepdims}
    expected = np.average(X, **counts)
    np.testing.assert_allclose(mean.numpy(), expected, rtol=1e-14)
    square = np.average(X**2, **counts) - expected**2
    np.testing.assert_allclose(variance.numpy(), square, rtol=1e-13, atol=1e-15)
    assert mean.shape == variance.shape == expected.shape


def test_no_weights_give_zero() -> None:
    for found in ops.weighted_moments(X, [0], 0.0):
        assert found.numpy().tolist() == [0.0] * 3


def test_the_part_of_zeros() -> None:
    for value, expected in ((X, 2 / 6), ([True, False], 0.5), ([np.nan, -0.0], 0.5), ([0], 1.0)):
        found = ops.zero_fraction(value)
        assert (found.dtype, float(found)) == (ops.float32, np.float32(expected))
    assert np.isnan(float(ops.zero_fraction([])))


@cases("shift", [None, 0.5, X[0]])
@cases(("axes", "keepdims"), [([0], False), ([-1], True), ((0, 1), False)])
def test_sums_that_make_the_moments(axes: Any, keepdims: bool, shift: Any) -> None:
    x = ops.constant(X)
    given = None if shift is None else ops.constant(shift, ops.float64)
    count, *sums, same = ops.sufficient_statistics(x, axes, given, keepdims)
    assert same is given
    assert float(count) == math.prod(X.shape[axis] for axis in axes)
    if shift is None or np.ndim(shift) == 0:
        expected = ops.moments(x, axes, keepdims=keepdims)
        for found, moment in zip(ops.normalize_moments(count, *sums, same), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), moment.numpy(), rtol=1e-13)
    distances = X - (0.0 if shift is None else shift)
    for found, power in zip(sums, (1, 2), strict=True):
        total = (distances**power).sum(tuple(axes), keepdims=keepdims)
        np.testing.assert_allclose(found.numpy(), total, rtol=1e-15)


def test_sums_of_what_does_not_fit() -> None:
    with pytest.raises(TypeError):
        ops.sufficient_statistics(X, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="attr 'T' of bool"):
        ops.sufficient_statistics([True], [0])
    with pytest.raises(InvalidArgumentError, match="Invalid reduction dimension"):
        ops.sufficient_statistics(X, [2])


_X_OF_MOMENTS = np.random.default_rng(1).normal(2.0, 3.0, (20, 4))
ROW = np.array([1.0, 2.0, -0.5, 0.25])


@cases("offset", [None, ROW])
@cases("scale", [None, ROW[::-1].copy()])
def test_batches(offset: Any, scale: Any) -> None:
    mean, variance = ops.moments(_X_OF_MOMENTS, [0])
    found = ops.batch_normalization(_X_OF_MOMENTS, mean, variance, offset, scale, 0.1).numpy()
    expected = (_X_OF_MOMENTS - _X_OF_MOMENTS.mean(0)) / np.sqrt(_X_OF_MOMENTS.var(0) + 0.1)
    expected = expected * (1.0 if scale is None else scale) + (0.0 if offset is None else offset)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shift", [None, ROW])
def test_moments_of_sums(shift: Any) -> None:
    apart = _X_OF_MOMENTS if shift is None else _X_OF_MOMENTS - shift
    mean, variance = ops.normalize_moments(np.float64(20.0), apart.sum(0), (apart**2).sum(0), shift)
    np.testing.assert_allclose(mean.numpy(), _X_OF_MOMENTS.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance.numpy(), _X_OF_MOMENTS.var(0), rtol=1e-12)
