"""Softmax, its logarithm, and the logarithm of a sum of exponentials."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.random.default_rng(0).standard_normal((2, 3))


@cases("axis", [0, 1, -1, -2])
def test_softmax_axis(axis: int) -> None:
    exponentials = np.exp(X)
    expected = exponentials / exponentials.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(ops.softmax(X, axis).numpy(), expected, rtol=1e-14)
    np.testing.assert_allclose(ops.log_softmax(X, axis).numpy(), np.log(expected), rtol=1e-14)


@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 2), ((), -1)])
def test_softmax_without_such_an_axis(shape: Any, axis: int) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"Invalid axis {axis} .*\[Op:Softmax\]"):
        ops.softmax(ops.zeros(shape), axis)
    with pytest.raises(InvalidArgumentError, match=rf"Invalid axis {axis} .*\[Op:LogSoftmax\]"):
        ops.log_softmax(ops.zeros(shape), axis)


@cases("axis", [None, 0, -1, (0, 1), ()])
@cases("keepdims", [False, True])
@cases("shift", [0.0, 1e4, -1e4])
def test_logarithm_of_a_sum(axis: Any, keepdims: bool, shift: float) -> None:
    found = ops.reduce_logsumexp(X + shift, axis, keepdims).numpy()
    expected = np.log(np.exp(X).sum(axis=axis, keepdims=keepdims)) + shift
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_logarithm_of_a_sum_of_nothing() -> None:
    np.testing.assert_array_equal(ops.reduce_logsumexp(np.zeros((2, 0)), 1).numpy(), [-np.inf] * 2)


def test_integers_have_none() -> None:
    with pytest.raises(InvalidArgumentError, match=r"int32 is not in the list .*\[Op:Exp\]"):
        ops.reduce_logsumexp([1, 2])
