"""Activation functions against NumPy."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


def test_none_and_functions_are_accepted() -> None:
    assert activations.get(None) is activations.linear
    assert activations.get(ops.tanh) is ops.tanh
