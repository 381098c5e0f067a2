"""Norms over axes, by their public names; `test_hard_values` has them at zeros and infinities."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.random.default_rng(5).normal(size=(2, 3, 4))


@cases("keepdims", [False, True])
@cases(
    ("order", "axis"),
    [
        *((order, -1) for order in (0.5, 1, 2, 3, np.inf)),
        (2, 0),
        *((order, axis) for order in ("fro", 1, 2, np.inf) for axis in ((2, 0), (-1, 1))),
    ],
)
def test_over_axes(order: Any, axis: Any, keepdims: bool) -> None:
    expected = np.linalg.norm(X, order, axis, keepdims)
    found = ops.norm(X, order, list(axis) if isinstance(axis, tuple) else axis, keepdims)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
    unit, length = ops.normalize(X, order, axis)
    np.testing.assert_allclose((unit * length).numpy(), X, rtol=1e-13)
    assert length.numpy().reshape(-1).tolist() == found.numpy().reshape(-1).tolist()


@cases(("order", "expected"), [(1, 21.0), (2, 125**0.5), (np.inf, 8.0)])
def test_the_whole_tensor_is_a_vector(order: float, expected: float) -> None:
    x = [[3.0, -4.0], [6.0, 8.0]]
    assert float(ops.norm(x, order)) == pytest.approx(expected)
    assert ops.norm(x, order, keepdims=True).shape == (1, 1)


@cases(
    ("order", "axis", "message"),
    [
        ("fro", None, "supported vector norm, got fro"),
        (0, 0, "supported vector norm, got 0"),
        (-np.inf, 0, "supported vector norm, got -inf"),
        (3, [0, 1], "supported matrix norm in"),
        ("nuc", [0, 1], "supported matrix norm in"),
        (1, [0], "a tuple of 2 unique integers, got"),
        (1, (0, 0), "a tuple of 2 unique integers, got"),
        (1, (0, 1.0), "a tuple of 2 unique integers, got"),
    ],
)
def test_orders_and_axes_that_there_are_not(order: Any, axis: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.norm(X[0], order, axis)


def test_the_gradient_of_the_largest_singular_value() -> None:
    x = ops.constant(X[0])
    with mr.GradientTape() as tape:
        tape.watch(x)
        length = ops.norm(x, 2, [1, 0])
    u, _, v = np.linalg.svd(X[0])
    found = tape.gradient(length, x).numpy()
    np.testing.assert_allclose(found, np.outer(u[:, 0], v[0]), rtol=1e-12)


def test_dtypes() -> None:
    assert ops.norm([1, -2], 1).dtype == ops.int32
    with pytest.raises(InvalidArgumentError, match="Op:Abs"):
        ops.norm(np.array([200, 1], np.uint8), np.inf)
    with pytest.raises(InvalidArgumentError, match="Op:Sqrt"):
        ops.norm([1, 2])
    with pytest.raises(TypeError, match="got dtype bool"):
        ops.norm([True])
    with pytest.raises(InvalidArgumentError, match="Op:L2Loss"):
        ops.l2_loss([1, 2])
    for dtype in ("int32", "int64", "uint8"):
        found = ops.reduce_euclidean_norm(np.array([[3, 4], [1, 2]], dtype), 1)
        assert (found.dtype.name, found.numpy().tolist()) == (dtype, [5, 2])
