"""Comparisons and logic, by their public names and operators."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError

NAMES = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@cases(("name", "symbol"), list(zip(NAMES, OPERATORS, strict=True)))
def test_comparisons(name: str, symbol: Callable[[Any, Any], Any]) -> None:
    x, y = np.array([1.0, 2.0, np.nan], np.float32), np.float32(2.0)
    expected = symbol(x, y)
    for found in (getattr(ops, name)(x, y), symbol(ops.constant(x), 2), symbol(x, ops.constant(y))):
        assert found.dtype == ops.bool_
        np.testing.assert_array_equal(found.numpy(), expected)


@cases(
    ("name", "ufunc"),
    [
        ("logical_and", np.logical_and),
        ("logical_or", np.logical_or),
        ("logical_xor", np.logical_xor),
    ],
)
def test_logic(name: str, ufunc: np.ufunc) -> None:
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(getattr(ops, name)(x, y).numpy(), ufunc(x, y))
    np.testing.assert_array_equal(getattr(ops, name)(x, True).numpy(), ufunc(x, True))


def test_logical_operators() -> None:
    x, y = ops.constant([True, False]), np.array([True, True])
    np.testing.assert_array_equal((x & y).numpy(), [True, False])
    np.testing.assert_array_equal((y & x).numpy(), [True, False])
    np.testing.assert_array_equal((x | False).numpy(), [True, False])
    np.testing.assert_array_equal((True | x).numpy(), [True, True])
    np.testing.assert_array_equal((x ^ y).numpy(), [False, True])
    np.testing.assert_array_equal((y ^ x).numpy(), [False, True])
    np.testing.assert_array_equal((~x).numpy(), [False, True])
    np.testing.assert_array_equal(ops.logical_not(x).numpy(), [False, True])


def test_none_is_equal_to_no_tensor() -> None:
    x = ops.constant([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711


def test_logic_takes_booleans_alone() -> None:
    with pytest.raises(InvalidArgumentError, match=r"attr 'T' of float .* \[Op:LogicalAnd\]"):
        ops.logical_and([1.0], [2.0])
    with pytest.raises(InvalidArgumentError, match=r"attr 'T' of bool .* \[Op:Less\]"):
        ops.less([True], [False])


def test_what_numbers_are() -> None:
    x = [1.0, -np.inf, np.nan]
    assert ops.is_finite(x).numpy().tolist() == [True, False, False]
    assert ops.is_inf(x).numpy().tolist() == [False, True, False]
    assert ops.is_nan(x).numpy().tolist() == [False, False, True]


def test_lists_over_axes_are_booleans() -> None:
    assert bool(ops.reduce_all([]))
    assert not bool(ops.reduce_any([]))
    with pytest.raises(TypeError, match="to a tensor of dtype bool"):
        ops.reduce_all([1, 0])
    with pytest.raises(InvalidArgumentError, match=r"attr 'T' of int32 .* \[Op:Any\]"):
        ops.reduce_any(ops.constant([1, 0]))
