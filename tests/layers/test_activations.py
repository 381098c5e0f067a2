"""Activation functions against NumPy."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.layers import activations

X = np.array([[-2.0, -0.5, 0.0], [0.5, 2.0, 30.0]])
EXPECTED: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.where(x > 0, x, 0),
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(x / 2)),
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
}


def test_every_public_activation_is_in_the_table() -> None:
    public = {
        name
        for name, value in vars(activations).items()
        if inspect.isfunction(value) and value.__module__ == activations.__name__
        if not name.startswith("_")
    }
    assert public - {"get"} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_values_are_numpys(name: str) -> None:
    function = activations.get(name)
    assert function is getattr(activations, name)
    np.testing.assert_allclose(
        function(ops.constant(X)).numpy(), EXPECTED[name](X), rtol=1e-12, atol=1e-15
    )


def test_softmax_runs_along_the_axis_asked_for() -> None:
    values = activations.softmax(ops.constant(X), axis=0).numpy()
    np.testing.assert_allclose(values.sum(axis=0), 1.0)


@pytest.mark.parametrize("axis", [(1, 2), [2, 1], (0, 2), (-1,), (-1, -3), (0, 1, 2)])
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


@pytest.mark.parametrize("axis", [(), (1, 3), (1, 1), (1, -2), (-4,)])
def test_axes_that_softmax_refuses(axis: Any) -> None:
    with pytest.raises(
        ValueError, match=r"or several different ones. Received: axis=.*\(2, 3, 4\)"
    ):
        activations.softmax(ops.zeros((2, 3, 4)), axis=axis)


@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_tensorflows_softmax_has_one_axis(function: Any) -> None:
    with pytest.raises(
        ValueError, match=r"`axis` is one axis\. Received: axis=\(0, 1\) .*`keras\."
    ):
        function(ops.zeros((2, 3)), axis=(0, 1))


def test_none_and_functions_are_accepted() -> None:
    assert activations.get(None) is activations.linear
    assert activations.get(ops.tanh) is ops.tanh
