"""Powers and roots, exponentials and logarithms, by their public names."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError

Y = np.array([2.0, 1.0, 0.5])
SMALL = np.array([1e-12, -1e-20, 0.25])


@cases(
    ("name", "x", "expected"),
    [
        ("square", Y, Y * Y),
        ("sqrt", Y, np.sqrt(Y)),
        ("rsqrt", Y, Y**-0.5),
        ("reciprocal", Y, 1.0 / Y),
        ("exp", Y, np.exp(Y)),
        ("log", Y, np.log(Y)),
        ("expm1", SMALL, np.expm1(SMALL)),
        ("log1p", SMALL, np.log1p(SMALL)),
    ],
)
def test_one_input(name: str, x: Any, expected: Any) -> None:
    np.testing.assert_allclose(getattr(ops, name)(x).numpy(), expected, rtol=1e-15)


def test_integer_powers() -> None:
    np.testing.assert_array_equal(ops.pow([2, 3], [3, 0]).numpy(), [8, 1])
    with pytest.raises(InvalidArgumentError, match="Integers to negative integer powers"):
        ops.pow([2, 3], [-1, 2])
    assert float(ops.pow(2.0, -1.0)) == 0.5


def test_polynomials() -> None:
    x = np.array([[2.0, -0.5], [0.0, 3.0]])
    two, zero, one = np.array([2.0, 0.0, 1.0])
    for coefficients in ([two, zero, -one], [x[0], one], [two]):
        expected = sum(each * x**i for i, each in enumerate(coefficients[::-1]))
        found = ops.polyval(coefficients, x) + ops.zeros_like(x)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)
    assert ops.polyval([], x).numpy().tolist() == np.zeros((2, 2)).tolist()
    with pytest.raises(ValueError, match="must be list type"):
        ops.polyval((1.0,), x)
