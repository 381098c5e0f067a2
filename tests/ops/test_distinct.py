"""Distinct values, and permutations, by their public names. The results are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

NAN = np.nan


@pytest.mark.parametrize(
    ("x", "y", "idx", "count"),
    [
        ([3, 1, 3, 2], [3, 1, 2], [0, 1, 0, 2], [2, 1, 1]),
        ([3.0, NAN, NAN, -0.0, 0.0], [3.0, NAN, NAN, -0.0], [0, 1, 2, 3, 3], [1, 1, 1, 2]),
        ([True, False, True], [True, False], [0, 1, 0], [2, 1]),
        ([], [], [], []),
    ],
)
@pytest.mark.parametrize("out_idx", ["int32", "int64"])
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
