"""Where values belong, by the public name; `test_every_op` has the ops."""

from typing import Any, Literal

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

NAN, INF = np.nan, np.inf
ROWS = np.sort(np.random.default_rng(2).integers(0, 9, (2, 3, 13)), axis=-1)
VALUES = np.random.default_rng(3).integers(-1, 11, (2, 3, 7))


@cases("side", ["left", "right"])
@cases("dtype", ["float32", "float64", "int32", "int64"])
def test_rows_of_batches(side: Literal["left", "right"], dtype: str) -> None:
    rows, values = ROWS.astype(dtype), VALUES.astype(dtype)
    for search in (ops.searchsorted, mr.function(ops.searchsorted)):
        found = search(ops.constant(rows), ops.constant(values), side, ops.int64)
        assert found.dtype == ops.int64
        for place in np.ndindex(2, 3):
            expected = np.searchsorted(rows[place], values[place], side)
            assert found.numpy()[place].tolist() == expected.tolist()


@cases(
    ("rows", "values", "left", "right"),
    [  # As TensorFlow has them.
        ([1.0, 2.0], [NAN, INF, -INF], [0, 2, 0], [2, 2, 0]),
        ([1.0, 2.0, NAN], [NAN, 3.0], [0, 2], [3, 3]),
        ([3.0, 1.0, 2.0], [2.0, 0.0, 5.0], [2, 0, 3], [3, 0, 3]),
        ([], [2.0], [0], [0]),
    ],
)
def test_hard_values(rows: Any, values: Any, left: list[int], right: list[int]) -> None:
    assert ops.searchsorted(rows, values).numpy().tolist() == left
    assert ops.searchsorted(rows, values, "right").numpy().tolist() == right


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="must be either 'right' or 'left'"):
        ops.searchsorted([1], [1], "middle")
    for rows, values, message in (
        ([[1, 3]], [[1], [2]], "Leading dim_size of both tensors must match"),
        ([1, 3], [1.0], "expected to be a int32 tensor but is a float tensor"),
        ([1, 3], 1, "a scalar"),
        (1, [1], "a scalar"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            ops.searchsorted(rows, values)
    with pytest.raises(InvalidArgumentError, match="attr 'out_type' of float"):
        ops.searchsorted([1], [1], out_type="float32")


NAN = np.nan


@cases(
    ("x", "y", "idx", "count"),
    [
        ([3, 1, 3, 2], [3, 1, 2], [0, 1, 0, 2], [2, 1, 1]),
        ([3.0, NAN, NAN, -0.0, 0.0], [3.0, NAN, NAN, -0.0], [0, 1, 2, 3, 3], [1, 1, 1, 2]),
        ([True, False, True], [True, False], [0, 1, 0], [2, 1]),
        ([], [], [], []),
    ],
)
@cases("out_idx", ["int32", "int64"])
def test_distinct_values(x: Any, y: Any, idx: Any, count: Any, out_idx: str) -> None:
    x = ops.constant(x)
    for given in (x, ops.cast(x, "bfloat16")) if x.dtype == ops.float32 else (x,):
        found = ops.unique_with_counts(given, out_idx)
        assert found.y.dtype == given.dtype
        np.testing.assert_array_equal(found.y.numpy().astype(x.dtype), np.array(y, x.dtype))
        assert np.signbit(found.y.numpy()).tolist() == np.signbit(y).tolist()
        for ours, expected in ((found.idx, idx), (found.count, count)):
            assert (ours.dtype.name, ours.numpy().tolist()) == (out_idx, expected)
        assert [each.numpy().tobytes() for each in ops.unique(given, out_idx)] == [
            each.numpy().tobytes() for each in found[:2]
        ]


def test_permutations() -> None:
    x = np.random.default_rng(1).permutation(50)
    for given, dtype in ((x, ops.int32), (ops.constant(x), ops.int64)):
        found = ops.invert_permutation(given)
        assert found.dtype == dtype
        assert x[found.numpy()].tolist() == list(range(50))
    assert ops.invert_permutation([]).shape == (0,)
    for wrong, message in (
        ([0, 5], "5 is not between 0 and 2"),
        ([0, -1], "-1 is not between 0 and 2"),
        ([0, 2, 2], "2 is duplicated"),
        ([[0]], "expects a 1D vector"),
        ([0.0], "attr 'T' of float"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            ops.invert_permutation(wrong)


@pytest.mark.parametrize("function", [ops.unique, ops.invert_permutation])
def test_not_in_a_recorded_function(function: Any) -> None:
    with pytest.raises(OperatorNotAllowedInGraphError):
        mr.function(function)(ops.constant([1, 0]))
