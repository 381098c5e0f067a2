"""Rounding, `//` and `%`, by their public names and operators."""

import operator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.array([-2.5, -1.5, -0.2, 0.5, 1.5, 2.6])


@cases(
    ("function", "expected"),
    [
        (ops.floor, [-3, -2, -1, 0, 1, 2]),
        (ops.ceil, [-2, -1, 0, 1, 2, 3]),
        (ops.round, [-2, -2, 0, 0, 2, 3]),
        (ops.rint, [-2, -2, 0, 0, 2, 3]),
    ],
)
def test_rounding(function: Any, expected: list[float]) -> None:
    np.testing.assert_array_equal(function(X).numpy(), expected)


def test_integers_are_round() -> None:
    assert ops.round([3, -4]).dtype == ops.int32
    with pytest.raises(InvalidArgumentError, match=r"attr 'T' of int32 .* \[Op:Floor\]"):
        ops.floor([3, -4])


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([7, -7, 7, -7, 6], [2, 2, -2, -2, 3]),
        ([7.5, -7.5, 7.5, -7.5, 6.0], [2.0, 2.0, -2.0, -2.0, 3.0]),
    ],
)
def test_quotients_are_rounded_down(x: list[Any], y: list[Any]) -> None:
    for symbol, function in (
        (operator.floordiv, ops.floordiv),
        (operator.mod, ops.floormod),
    ):
        expected = [symbol(a, b) for a, b in zip(x, y, strict=True)]
        for found in (
            function(x, y),
            symbol(mr.constant(x), y),
            symbol(x, mr.constant(y)),
            symbol(mr.Variable(x), y),
        ):
            assert found.numpy().tolist() == expected


def test_a_quotient_is_rounded_before_it_is_rounded_down() -> None:
    """As in TensorFlow; in Python 1.0 // 0.1 is 9."""
    assert float(mr.constant(1.0, "float64") // 0.1) == 10.0


@pytest.mark.parametrize(("symbol", "op"), [("floordiv", "FloorDiv"), ("mod", "FloorMod")])
def test_integers_are_not_divided_by_zero(symbol: str, op: str) -> None:
    divide, x = getattr(operator, symbol), mr.constant([4, 5])
    v = mr.Variable([1, 1])

    @mr.function
    def step(y: Any) -> None:
        v.assign(divide(x, y))

    step(mr.constant([2, 3]))
    before = v.numpy().tolist()
    for call in (lambda: divide(x, [1, 0]), lambda: step(mr.constant([1, 0]))):
        with pytest.raises(InvalidArgumentError, match=rf"Integer division by zero.*\[Op:{op}\]"):
            call()
    assert v.numpy().tolist() == before
    assert np.isinf((mr.constant(1.0) // 0.0).numpy())
    assert divide(x[:0], 0).shape == (0,)
