"""The activations, beside formulas in NumPy; `test_hard_values.py` has their ends and kinks."""

import math
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops

X = np.array([-1e4, -5.0, -2.0, -0.25, 0.0, 0.5, 3.0, 6.5, 1e4])
NORMAL = 0.5 * np.array([math.erfc(-x / math.sqrt(2.0)) for x in X])
EXP = np.exp(np.minimum(X, 0)) - 1


@cases(
    ("name", "options", "expected"),
    [
        ("crelu", {}, np.concatenate([np.clip(X, 0, None), np.clip(-X, 0, None)])),
        ("elu", {}, np.where(X > 0, X, EXP)),
        ("gelu", {}, X * NORMAL),
        ("leaky_relu", {}, np.where(X > 0, X, 0.2 * X)),
        ("leaky_relu", {"alpha": 2.0}, np.where(X > 0, X, 2 * X)),
        ("log_sigmoid", {}, -np.logaddexp(0, -X)),
        ("relu6", {}, np.clip(X, 0, 6)),
        ("selu", {}, 1.05070098735548 * np.where(X > 0, X, 1.67326324235438 * EXP)),
        ("silu", {"beta": 0.5}, X * 0.5 * (1 + np.tanh(X / 4))),
        ("softsign", {}, X / (1 + np.abs(X))),
    ],
)
def test_values(name: str, options: dict[str, Any], expected: Any) -> None:
    found = getattr(ops, name)(X, **options).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


def test_the_approximation_of_gelu_has_three_digits() -> None:
    x = np.linspace(-5.0, 5.0, 101)
    off = np.abs(ops.gelu(x, approximate=True).numpy() - ops.gelu(x).numpy())
    assert 1e-4 < off.max() < 1e-3


def test_integers() -> None:
    assert ops.leaky_relu([5, -5]).numpy().tolist() == [5.0, -1.0]
    assert ops.relu6(np.array([-1, 3, 9])).numpy().tolist() == [0, 3, 6]
    with pytest.raises(ValueError, match=r"must be a floating point tensor.*int32"):
        ops.gelu([1, 2])
    with pytest.raises(TypeError, match="Expected float for argument 'alpha' not 'a'"):
        ops.leaky_relu([1.0], "a")  # type: ignore[arg-type]
