"""Trigonometric and hyperbolic functions, by their public names."""

from typing import Any

import numpy as np
from case_table import cases

from mirrored import ops

X = np.array([-0.5, 0.0, 0.25, 0.75])


@cases(
    ("name", "x", "ufunc"),
    [
        ("sin", X, np.sin),
        ("cos", X, np.cos),
        ("tan", X, np.tan),
        ("asin", X, np.arcsin),
        ("acos", X, np.arccos),
        ("atan", X, np.arctan),
        ("sinh", X, np.sinh),
        ("cosh", X, np.cosh),
        ("asinh", X, np.arcsinh),
        ("acosh", X + 2.0, np.arccosh),
        ("atanh", X, np.arctanh),
    ],
)
def test_one_input(name: str, x: Any, ufunc: np.ufunc) -> None:
    np.testing.assert_allclose(getattr(ops, name)(x).numpy(), ufunc(x), rtol=1e-15)


def test_the_angle_of_a_point() -> None:
    """By TensorFlow's order of arguments, which is C's: y first."""
    y, x = np.array([1.0, 1.0, -1.0, -0.0]), np.array([1.0, -1.0, -1.0, -2.0])
    expected = np.pi * np.array([0.25, 0.75, -0.75, -1.0])
    np.testing.assert_allclose(ops.atan2(y, x).numpy(), expected, rtol=1e-15)
