"""Ops that move values about."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

X = np.arange(24.0).reshape(2, 3, 4)


@cases("shape", [(24,), 24, (-1,), -1, [4, -1], (2, -1, 4), np.array([6, 4]), (1, 2, 12, 1)])
def test_reshape(shape: Any) -> None:
    np.testing.assert_array_equal(ops.reshape(X, shape).numpy(), X.reshape(shape))


def test_reshape_by_a_tensor_and_of_nothing() -> None:
    assert ops.reshape(X, ops.constant([4, 6])).shape == (4, 6)
    assert ops.reshape(np.zeros((0, 3)), (-1, 3)).shape == (0, 3)
    assert ops.reshape(np.zeros((0, 3)), (0, -1)).shape == (0, 3)


@cases(
    ("shape", "error", "text"),
    [
        ((5,), InvalidArgumentError, "a tensor with 24 values, but the requested shape has 5"),
        ((5, -1), InvalidArgumentError, "a tensor with 24 values, but the requested shape has 20"),
        ((-1, -1), InvalidArgumentError, r"Only one input size may be -1.*Received: \(-1, -1\)"),
        ((-2, -12), InvalidArgumentError, r"Dimensions of a shape must be >= 0"),
        ((2.5, 2), TypeError, "The shape must be an integer or a sequence of integers"),
    ],
)
def test_reshape_that_does_not_fit(shape: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ops.reshape(X, shape)


@cases("axis", [0, 1, 3, -1, -4])
def test_expand_dims_and_squeeze(axis: int) -> None:
    expanded = ops.expand_dims(X, axis)
    assert expanded.shape == np.expand_dims(X, axis).shape
    assert ops.squeeze(expanded, axis).shape == X.shape
    assert ops.squeeze(expanded).shape == X.shape
    assert ops.squeeze(expanded, [np.int64(axis)]).shape == X.shape
    assert ops.squeeze(expanded, np.int64(axis)).shape == X.shape


def test_axes_that_are_not_there() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Invalid axis 5 .*\[-4, 4\) \[Op:ExpandDims\]"):
        ops.expand_dims(X, 5)
    with pytest.raises(InvalidArgumentError, match=r"squeeze dim\[0\], .* got 2 \[Op:Squeeze\]"):
        ops.squeeze(X, 0)
    with pytest.raises(InvalidArgumentError, match=r"Invalid axis 3 .*\[Op:Squeeze\]"):
        ops.squeeze(X, 3)


@cases("perm", [None, (2, 0, 1), [0, 2, 1], (-1, 0, 1)])
def test_transpose(perm: Any) -> None:
    np.testing.assert_array_equal(ops.transpose(X, perm).numpy(), np.transpose(X, perm))
    assert ops.transpose(3.0).shape == ()


@cases("perm", [(0, 1), (0, 0, 1), (0, 1, 3)])
def test_transpose_by_no_permutation(perm: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"permutation of the 3 axes.*Received: \(0, "):
        ops.transpose(X, perm)


def test_results_are_contiguous_copies() -> None:
    t = ops.transpose(X)
    assert t._array.flags["C_CONTIGUOUS"]


def test_concat() -> None:
    joined = ops.concat([ops.constant(X), X.tolist(), X[:, :1]], axis=-2)
    assert joined.dtype == ops.float64  # The list takes the dtype of the tensor.
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([X, X, X[:, :1]], axis=1))
    np.testing.assert_array_equal(ops.concat(X, 0).numpy(), X)  # No list: a single tensor.


@cases(
    ("values", "axis", "error", "text"),
    [
        ([], 0, ValueError, r"at least one tensor. Received: \[\]"),
        (3.0, 0, InvalidArgumentError, "Received: scalars"),
        ([1.0, 2.0], 0, InvalidArgumentError, "Received: scalars"),
        ([[1.0], [[1.0]]], 0, InvalidArgumentError, r"shape\[0\] = \[1\] vs. shape\[1\] = \[1,1\]"),
        ([X, X[:1]], 1, InvalidArgumentError, r"\[2,3,4\] vs. shape\[1\] = \[1,3,4\] \[Op:ConcatV"),
        ([[1.0]], 1, InvalidArgumentError, r"Invalid axis 1 .* \[Op:ConcatV2\]"),
        ([np.ones(1), np.ones(1, bool)], 0, None, ""),
        ([[1], [1.5]], 0, InvalidArgumentError, "to be a int32 tensor but is a float tensor"),
    ],
)
def test_concat_that_does_not_fit(values: Any, axis: int, error: Any, text: str) -> None:
    if error is None:
        assert ops.concat(values, axis).dtype == ops.float64
        return
    with pytest.raises(error, match=text):
        ops.concat(values, axis)


def test_broadcast_to() -> None:
    np.testing.assert_array_equal(ops.broadcast_to([1, 2], (2, 2)).numpy(), [[1, 2], [1, 2]])
    for shape in ((3, 2), (4,), ()):
        with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2,3,4\] vs. \["):
            ops.broadcast_to(X, shape)


def test_cast() -> None:
    t = ops.constant([1.7, -1.7, 0.0])
    assert ops.cast(t, "float32") is t
    np.testing.assert_array_equal(ops.cast(t, ops.int32).numpy(), [1, -1, 0])
    np.testing.assert_array_equal(ops.cast(t, bool).numpy(), [True, True, False])
    with pytest.raises(TypeError, match="Received: 'complex64'"):
        ops.cast(t, "complex64")


def test_gradient_of_a_cast_has_the_dtype_of_its_input() -> None:
    t = ops.constant([1.0, 2.0])
    with GradientTape(persistent=True) as tape:
        tape.watch(t)
        y = ops.cast(t, "float64") * 3.0
        z = ops.cast(ops.cast(t, "int32"), "float32")
    assert tape.gradient(y, t).dtype == ops.float32
    assert tape.gradient(z, t) is None


def test_identity_moves_and_stop_gradient_stops(simulate: Any) -> None:
    simulate(2)
    t = ops.constant(3.0)
    with devices.device("GPU:1"):
        moved = ops.identity(t)
    assert moved.device.endswith("GPU:1")
    with GradientTape() as tape:
        tape.watch(t)
        y = ops.identity(t) * ops.stop_gradient(t)
    assert float(tape.gradient(y, t)) == 3.0
