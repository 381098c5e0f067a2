"""Activations, and the logits that some of their results remember."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError


def test_values() -> None:
    x = ops.constant([-2.0, 0.0, 3.0])
    np.testing.assert_array_equal(ops.relu(x).numpy(), [0.0, 0.0, 3.0])
    np.testing.assert_allclose(ops.sigmoid(x).numpy(), 1 / (1 + np.exp([2.0, 0, -3])), rtol=1e-6)
    np.testing.assert_allclose(ops.tanh(x).numpy(), np.tanh([-2.0, 0, 3]), rtol=1e-6)
    np.testing.assert_allclose(float(ops.reduce_sum(ops.softmax(x))), 1.0, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_values(dtype: str) -> None:
    x = np.array([-1e4, 1e4], dtype)
    np.testing.assert_array_equal(ops.sigmoid(x).numpy(), [0.0, 1.0])
    np.testing.assert_array_equal(ops.softmax(x).numpy(), [0.0, 1.0])
    np.testing.assert_array_equal(ops.tanh(x).numpy(), [-1.0, 1.0])


def test_softplus_does_not_overflow() -> None:
    x = np.array([-1e4, -20.0, 0.0, 20.0, 1e4])
    np.testing.assert_allclose(ops.softplus(x).numpy(), np.logaddexp(x, 0.0), rtol=1e-15)


def test_relu_lets_nan_through() -> None:
    assert np.isnan(float(ops.relu(np.nan)))


def test_logits_are_remembered() -> None:
    x = ops.constant([[1.0, 2.0]])
    assert ops.logits_of(ops.softmax(x), "softmax") is x
    assert ops.logits_of(ops.sigmoid(x), "sigmoid") is x
    assert ops.logits_of(ops.softmax(x), "sigmoid") is None
    assert ops.logits_of(ops.softmax(x, axis=0), "softmax") is None
    assert ops.logits_of(ops.relu(x), "softmax") is None
    assert ops.logits_of(ops.softmax(x) * 1.0, "softmax") is None


def test_logits_go_with_the_probabilities() -> None:
    x = ops.constant([[1.0, 2.0]])
    probabilities = ops.softmax(x)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None
    del probabilities
    gc.collect()
    assert alive() is None


def test_bias_add() -> None:
    value = np.zeros((2, 2, 3))
    np.testing.assert_array_equal(
        ops.bias_add(value, [1.0, 2.0, 3.0]).numpy(), value + np.array([1.0, 2.0, 3.0])
    )
    bias = ops.constant(np.ones(3))
    assert ops.bias_add([[1.0, 2.0, 3.0]], bias).dtype == ops.float64


def test_bias_add_along_the_second_axis() -> None:
    value, bias = np.arange(24.0).reshape(2, 3, 4), np.array([1.0, 2.0, 3.0])
    for data_format in ("NCHW", "NC..."):
        found = ops.bias_add(value, bias, data_format).numpy()
        np.testing.assert_array_equal(found, value + bias[:, None])
    np.testing.assert_array_equal(
        ops.bias_add(value.swapaxes(1, 2), bias, "N...C"), found.swapaxes(1, 2)
    )
    with pytest.raises(InvalidArgumentError, match="as many biases as the channel dimension"):
        ops.bias_add(value, np.ones(4), "NC...")
    with pytest.raises(ValueError, match=r"must be of the form `N\.\.\.C` or `NC\.\.\.`"):
        ops.bias_add(value, bias, "CHWN")


@cases(("value", "bias"), [((2, 3), (2,)), ((3,), (3,)), ((2, 3), (1, 3))])
def test_bias_of_another_size(value: Any, bias: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"as many biases as .* \[Op:BiasAdd\]"):
        ops.bias_add(ops.zeros(value), ops.zeros(bias))
