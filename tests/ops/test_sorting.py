"""The order of elements, by its public names; `test_every_op` has the places of the first ones."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
# Of 64 bits the upper and the lower halves are sorted one after the other.
INTEGERS = [2**40 + 3, -(2**40), 2**40 + 1, 2**63 - 1, -(2**63), 2**32 - 1, -1, 2**31, 0, 2**40]
FLOATS = [0.0, NAN, -0.0, 1.0, -INF, -1.0, INF, -NAN, 1.0 + 2.0**-50, -1e-300, 1e-300]


@cases("direction", ["ASCENDING", "DESCENDING"])
@cases("axis", [0, 1, -1])
@cases(
    "values",
    [
        np.array(INTEGERS),
        np.array(FLOATS),
        np.array(FLOATS, np.float32),
        np.array([3, 0, 255, 3], np.uint8),
    ],
)
def test_along_an_axis(values: Any, axis: int, direction: str) -> None:
    """NaN is the largest, and of equal ones the first comes first."""
    x = np.stack([values, np.roll(values, 3), values[::-1]])
    turned = np.flip(x, axis) if direction == "DESCENDING" else x
    places = np.argsort(turned, axis, kind="stable")
    if direction == "DESCENDING":
        places = x.shape[axis] - 1 - np.flip(places, axis)
    for function in (ops.argsort, mr.function(ops.argsort)):
        found = function(ops.constant(x), axis, direction)
        assert found.dtype == ops.int32
        assert found.numpy().tolist() == places.tolist()
    found = ops.sort(x, axis, direction).numpy()
    assert found.tobytes() == np.take_along_axis(x, places, axis).tobytes()


def test_the_first_ones() -> None:
    x = ops.constant([[1.0, 3.0, 3.0, NAN], [2.0, 2.0, 4.0, -1.0]])
    for k in range(5):
        values, indices = ops.top_k(x, k, sorted=False, index_type="int64")
        assert indices.dtype == ops.int64
        assert indices.numpy().tolist() == [[3, 1, 2, 0][:k], [2, 0, 1, 3][:k]]
        np.testing.assert_array_equal(values.numpy(), [[NAN, 3, 3, 1][:k], [4, 2, 2, -1][:k]])
    assert ops.top_k(x).values.shape == (2, 1)


def test_gradients_go_back_to_where_elements_came_from() -> None:
    x = ops.constant([[3.0, 1.0, 3.0], [1.0, 2.0, 0.0]])
    with mr.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, down = ops.top_k(x, 2).values, ops.sort(x, axis=0, direction="DESCENDING")
    found = tape.gradient(first, x, ops.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert found.numpy().tolist() == [[1.0, 0.0, 2.0], [4.0, 3.0, 0.0]]
    found = tape.gradient(down, x, ops.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert found.numpy().tolist() == [[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]]


@cases("k", [4, -1, 1.0, [1]])
def test_counts_that_there_are_not(k: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="TopKV2"):
        ops.top_k([1.0, 2.0, 3.0], k)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="should be one of ASCENDING, DESCENDING"):
        ops.sort([1], direction="descending")
    with pytest.raises(ValueError, match="must be a constant scalar"):
        ops.argsort([1], [0])
    for wrong in (lambda: ops.sort(1), lambda: ops.sort([1], 1), lambda: ops.top_k(1, 1)):
        with pytest.raises(InvalidArgumentError, match="TopKV2"):
            wrong()
    with pytest.raises(InvalidArgumentError, match="attr 'T' of bool"):
        ops.sort([True])
    with pytest.raises(InvalidArgumentError, match="attr 'index_type' of float"):
        ops.top_k([1.0], index_type=ops.float32)


@cases(
    ("target", "row", "least"),  # Of how many it has to be one of the largest, None: of any number.
    [
        (0, [1.0, 2.0, 3.0], 3),
        (1, [1.0, 2.0, 3.0], 2),
        (2, [3.0, 1.0, 1.0], 2),
        (3, [1.0, 2.0, 3.0], None),
        (-1, [1.0, 2.0, 3.0], None),
        (0, [1.0, NAN, 3.0], None),
        (0, [INF, 1.0, 3.0], None),
    ],
)
def test_a_target_among_the_largest(target: int, row: Any, least: int | None) -> None:
    @mr.function
    def recorded(targets: ops.Tensor, rows: ops.Tensor) -> list[ops.Tensor]:
        return [ops.in_top_k(targets, rows, k) for k in range(5)]

    given = ops.constant([target, 0]), ops.constant([row, [9.0, 0.0, 0.0]])
    found = [each.numpy().tolist() for each in recorded(*given)]
    expected = [least is not None and k >= least for k in range(5)]
    assert found == [[each, k > 0] for k, each in enumerate(expected)]


def test_a_target_that_does_not_fit() -> None:
    assert ops.in_top_k([0], ops.zeros((1, 0)), 1).numpy().tolist() == [False]
    for targets, predictions, message in (
        ([0, 1], [[1.0]], "First dimension of predictions 1 must match length of targets 2"),
        ([[0]], [[1.0]], "targets must be 1-dimensional"),
        ([0], [1.0], "predictions must be 2-dimensional"),
        ([0.0], [[1.0]], "attr 'T' of float"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            ops.in_top_k(targets, predictions, 1)


@cases(
    ("x", "not_decreasing", "increasing"),
    [
        ([1, 2, 3], True, True),
        ([[1, 2], [2, 3]], True, False),
        ([1, 3, 2], False, False),
        ([-(2**31), 2**31 - 1], True, True),
        (np.array([1, 0], np.uint8), False, False),
        ([1.0, NAN], False, False),
        ([INF, INF], True, False),
        ([], True, True),
        (3, True, True),
    ],
)
def test_rows_in_order(x: Any, not_decreasing: bool, increasing: bool) -> None:
    assert bool(ops.is_non_decreasing(x)) == not_decreasing
    assert bool(ops.is_strictly_increasing(x)) == increasing
    with pytest.raises(TypeError, match="Expected x to be numeric"):
        ops.is_non_decreasing([True])
