"""Activation functions against NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.layers import activations


def sparsemax_as_keras(x: Any) -> Any:
    sums = [[sorted(row)[-i:] for i in range(1, 1 + len(row))] for row in x.tolist()]
    kept = [[sum(v) for v in row if v[0] - (sum(v) - 1) / len(v) > 0] for row in sums]
    return np.maximum(x - [[(sum(row) - 1) / len(row)] for row in kept], 0)


X = np.array([[-2.0, -0.5, 0.0], [0.5, 2.0, 30.0]])
EXPECTED: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.where(x > 0, x, 0),
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(x / 2)),
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "exponential": lambda x: np.e**x,
    "gelu": lambda x: x * 0.5 * np.vectorize(math.erfc)(-x / np.sqrt(2)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "log_softmax": lambda x: x - np.log(np.exp(x).sum(axis=-1, keepdims=True)),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.05070098735548 * np.where(x > 0, x, 1.67326324235438 * np.expm1(x)),
    "silu": lambda x: x * 0.5 * (1 + np.tanh(x / 2)),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "swish": lambda x: x * 0.5 * (1 + np.tanh(x / 2)),
    "hard_shrink": lambda x: x * (np.abs(x) > 0.5),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "tanh_shrink": lambda x: x - np.tanh(x),
    "squareplus": lambda x: x / 2 + np.sqrt(x * x / 4 + 1),
    "sparse_plus": lambda x: np.where(x > 1, x, np.maximum(x + 1, 0) ** 2 / 4),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "sparsemax": lambda x: sparsemax_as_keras(x),
}
OF_OTHER_ARGUMENTS = {"threshold", "glu"}


def test_every_public_activation_is_in_the_table() -> None:
    others = {"get", "serialize", "deserialize", "Activation"}
    assert set(activations.__all__) - others == set(EXPECTED) | OF_OTHER_ARGUMENTS


@cases("name", EXPECTED)
def test_values_are_numpys(name: str) -> None:
    function = activations.get(name)
    assert function is getattr(activations, name)
    np.testing.assert_allclose(
        function(ops.constant(X)).numpy(), EXPECTED[name](X), rtol=1e-12, atol=1e-15
    )


@cases(
    ("name", "options", "expected"),
    [
        ("relu", {"negative_slope": 0.5}, [-1.5, -0.5, 2.0, 9.0]),
        ("relu", {"max_value": 6}, [0.0, 0.0, 2.0, 6.0]),
        ("relu", {"max_value": 1.5}, [0.0, 0.0, 1.5, 1.5]),
        ("relu", {"threshold": 3.0}, [0.0, 0.0, 0.0, 9.0]),
        ("relu", {"negative_slope": 0.5, "max_value": 6, "threshold": 3}, [-3.0, -2.0, -0.5, 6.0]),
        ("leaky_relu", {"negative_slope": 0.5}, [-1.5, -0.5, 2.0, 9.0]),
        ("elu", {"alpha": 2.0}, [2 * np.expm1(-3), 2 * np.expm1(-1), 2.0, 9.0]),
        ("threshold", {"threshold": 2, "default_value": 7}, [7.0, 7.0, 7.0, 9.0]),
        ("celu", {"alpha": 2.0}, [2 * np.expm1(-1.5), 2 * np.expm1(-0.5), 2.0, 9.0]),
    ],
)
def test_options(name: str, options: dict[str, Any], expected: list[float]) -> None:
    found = getattr(activations, name)(np.array([-3.0, -1.0, 2.0, 9.0]), **options)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)


def test_two_halves() -> None:
    x = np.arange(8.0).reshape(4, 2)
    gates = 0.5 * (1 + np.tanh(x[2:] / 2))
    np.testing.assert_allclose(activations.glu(x, axis=0).numpy(), x[:2] * gates, rtol=1e-14)
    with pytest.raises(ValueError, match=r"axis size must be divisible by 2. Received: x.shape"):
        activations.glu(np.ones((2, 3)))


def test_what_keras_leaves_of_values_that_are_alike() -> None:
    """Numbers of Keras 3.15.1 on TensorFlow: they do not add up to 1."""
    x = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0], [5.0, 5.0, 1.0]], np.float32)
    expected = [[0.0, 0.06666663, 0.16666664], [1 / 3] * 3, [0.0] * 3]
    for axis, given in ((-1, x), (0, x.T)):
        found = activations.sparsemax(given, axis=axis).numpy()
        np.testing.assert_allclose(found if axis else found.T, expected, rtol=1e-6)
    with pytest.raises(mr.errors.InvalidArgumentError, match=r"x.shape=\(3, 3\) with axis=2"):
        activations.sparsemax(x, axis=2)


def test_softmax_runs_along_the_axis_asked_for() -> None:
    values = activations.softmax(ops.constant(X), axis=0).numpy()
    np.testing.assert_allclose(values.sum(axis=0), 1.0)


@cases("axis", [(1, 2), [2, 1], (0, 2), (-1,), (-1, -3), (0, 1, 2)])
def test_softmax_over_several_axes(axis: Any) -> None:
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4)
    exp = np.exp(x)
    expected = exp / exp.sum(axis=tuple(axis), keepdims=True)
    given = ops.constant(x)
    with mr.GradientTape() as tape:
        tape.watch(given)
        values = activations.softmax(given, axis=axis)
        largest = ops.reduce_sum(values * x)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-12)
    mean = (expected * x).sum(axis=tuple(axis), keepdims=True)
    gradient = np.asarray(tape.gradient(largest, given))
    np.testing.assert_allclose(gradient, expected * (x - mean), rtol=1e-9, atol=1e-12)


@cases("function", [activations.log_softmax, mr.keras.ops.log_softmax])
@cases("axis", [(1, 2), [2, 0], (-1,), ()])
def test_log_softmax_over_several_axes(function: Any, axis: Any) -> None:
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4)
    expected = x - np.log(np.exp(x).sum(axis=tuple(axis), keepdims=True))
    np.testing.assert_allclose(function(ops.constant(x), axis=axis).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(
        activations.softmax(ops.constant(x), axis=axis).numpy(), np.exp(expected), rtol=1e-12
    )


@cases("function", [activations.softmax, activations.log_softmax])
@cases("axis", [(1, 3), (1, 1), (1, -2), (-4,)])
def test_axes_that_softmax_refuses(function: Any, axis: Any) -> None:
    with pytest.raises(
        ValueError, match=r"or several different ones. Received: axis=.*\(2, 3, 4\)"
    ):
        function(ops.zeros((2, 3, 4)), axis=axis)


@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_tensorflows_softmax_has_one_axis(function: Any) -> None:
    with pytest.raises(
        ValueError, match=r"`axis` must be one axis\. Received: axis=\(0, 1\) .*`keras\."
    ):
        function(ops.zeros((2, 3)), axis=(0, 1))


def test_none_and_functions_are_accepted() -> None:
    assert activations.get(None) is activations.linear
    assert activations.get(ops.tanh) is ops.tanh
