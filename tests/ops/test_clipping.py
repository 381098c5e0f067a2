"""Limits on values and norms."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError


def test_by_value() -> None:
    np.testing.assert_array_equal(
        ops.clip_by_value([-2.0, 0.5, 2.0], -1.0, 1.0).numpy(), [-1.0, 0.5, 1.0]
    )
    # The bounds broadcast, and where they cross the lower one holds, as in TensorFlow.
    np.testing.assert_array_equal(
        ops.clip_by_value([1.0, 2.0], [0.0, 3.0], 1.0).numpy(), [1.0, 3.0]
    )


@cases(
    ("axes", "expected"),
    [
        (None, [[0.6, 0.8], [0.0, 0.0]]),
        (1, [[0.6, 0.8], [0.0, 0.0]]),
        (0, [[1.0, 1.0], [0.0, 0.0]]),
    ],
)
def test_by_norm(axes: Any, expected: Any) -> None:
    clipped = ops.clip_by_norm(np.array([[3.0, 4.0], [0.0, 0.0]]), 1.0, axes)
    np.testing.assert_allclose(clipped.numpy(), expected, rtol=1e-15)


def test_what_is_within_the_norm_keeps_its_bits() -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    np.testing.assert_array_equal(ops.clip_by_norm(x, 1e3).numpy(), x)
    clipped, _ = ops.clip_by_global_norm([x, x], 1e3)
    np.testing.assert_array_equal(clipped[0].numpy(), x)


def test_gradient_at_zero() -> None:
    x = ops.constant([0.0, 0.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.clip_by_norm(x, 1.0)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1.0, 1.0])


def test_by_global_norm() -> None:
    clipped, norm = ops.clip_by_global_norm([[3.0], None, [[4.0]]], 1.0)
    assert float(norm) == 5.0
    assert clipped[1] is None
    np.testing.assert_allclose([float(clipped[0][0]), float(clipped[2][0, 0])], [0.6, 0.8])
    assert float(ops.global_norm([[3.0], None, [4.0]])) == 5.0


def test_a_known_global_norm_is_used() -> None:
    clipped, norm = ops.clip_by_global_norm([[3.0]], 1.0, use_norm=30.0)
    assert float(norm) == 30.0
    assert float(clipped[0][0]) == pytest.approx(0.1)


def test_normalized_to_length_one() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(ops.l2_normalize(x, 1).numpy(), [[0.6, 0.8], [0, 0]], rtol=1e-15)
    np.testing.assert_allclose(ops.l2_normalize(x).numpy(), x / 5.0, rtol=1e-15)
    np.testing.assert_allclose(ops.l2_normalize(x, epsilon=100.0).numpy(), x / 10.0, rtol=1e-15)
    with pytest.raises(InvalidArgumentError, match=r"int32 is not in the list .*\[Op:Rsqrt\]"):
        ops.l2_normalize([3, 4])


@cases("limit", [0.0, -1.0, float("nan")])
def test_limits_are_above_zero(limit: float) -> None:
    with pytest.raises(ValueError, match=r"clip_norm must be a number above 0. Received: "):
        ops.clip_by_norm([1.0], limit)
    with pytest.raises(ValueError, match=r"clip_norm must be a number above 0. Received: "):
        ops.clip_by_global_norm([[1.0]], limit)


def test_lists_of_tensors() -> None:
    with pytest.raises(TypeError, match=r"should be a sequence of tensors. Received: Tensor"):
        ops.clip_by_global_norm(ops.constant([1.0]), 1.0)  # type: ignore[arg-type]
    for empty in ([], [None]):
        with pytest.raises(ValueError, match="norm of an empty list"):
            ops.global_norm(empty)
