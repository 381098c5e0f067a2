"""Numbers in order, places and shapes, by their public names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

# TensorFlow 2.21's results.
RESULTS: list[tuple[Callable[[], Any], str, Any]] = [
    (lambda: ops.range(3), "int32", [0, 1, 2]),
    (lambda: ops.range(2, 10, 3), "int32", [2, 5, 8]),
    (lambda: ops.range(10, 2, -3), "int32", [10, 7, 4]),
    (lambda: ops.range(3.0, 1.0, -0.5), "float32", [3, 2.5, 2, 1.5]),
    (lambda: ops.range(1, ops.constant(3.5)), "float32", [1, 2, 3]),
    (lambda: ops.range(ops.constant(2, "int64")), "int64", [0, 1]),
    (lambda: ops.range(2, dtype="float64"), "float64", [0, 1]),
    (lambda: ops.range(0), "int32", []),
    (lambda: ops.range(0.0, 100.0, 0.1)[-1], "float32", 99.9000015),
    (lambda: ops.linspace(0.0, 1.0, 5), "float32", [0, 0.25, 0.5, 0.75, 1]),
    (lambda: ops.linspace(0, 10, 5), "float64", [0, 2.5, 5, 7.5, 10]),
    (lambda: ops.linspace(0.0, 1.0, 1), "float32", [0]),
    (lambda: ops.linspace(0.0, 1.0, 0), "float32", []),
    (lambda: ops.linspace(0.0, [1.0, 2.0], 3), "float32", [[0, 0], [0.5, 1], [1, 2]]),
    (lambda: ops.linspace([0.0, 5.0], [4.0, 7.0], 3), "float32", [[0, 5], [2, 6], [4, 7]]),
    (lambda: ops.linspace([0.0, 5.0], [4.0, 7.0], 3, axis=-1), "float32", [[0, 2, 4], [5, 6, 7]]),
    (lambda: ops.eye(2, 3), "float32", [[1, 0, 0], [0, 1, 0]]),
    (lambda: ops.eye(1, batch_shape=[2], dtype="int32"), "int32", [[[1]], [[1]]]),
    (lambda: ops.one_hot([0, -1, 3], 3), "float32", [[1, 0, 0], [0, 0, 0], [0, 0, 0]]),
    (lambda: ops.one_hot([1], 2, 5, -1), "int32", [[-1, 5]]),
    (lambda: ops.one_hot(np.array([1.0, -1.0]), 2), "float32", [[0, 1], [0, 0]]),
    (lambda: ops.one_hot([True], 2), "float32", [[0, 1]]),
    (lambda: ops.one_hot([1], 2, True, False), "bool", [[False, True]]),
    (lambda: ops.one_hot([[0, 1]], 2, axis=0), "float32", [[[1, 0]], [[0, 1]]]),
    (lambda: ops.one_hot([[0, 1]], 2, axis=1), "float32", [[[1, 0], [0, 1]]]),
    (lambda: ops.one_hot(ops.constant([1], "uint8"), 2, dtype="int64"), "int64", [[0, 1]]),
    (lambda: ops.meshgrid([1, 2, 3], [4, 5])[0], "int32", [[1, 2, 3], [1, 2, 3]]),
    (lambda: ops.meshgrid([1, 2, 3], [4, 5], indexing="ij")[1], "int32", [[4, 5]] * 3),
    (lambda: ops.meshgrid([1, 2], [3], [4, 5])[2], "int32", [[[4, 5], [4, 5]]]),
    (lambda: ops.sequence_mask([1, 0], 2), "bool", [[True, False], [False, False]]),
    (lambda: ops.sequence_mask([[2]], dtype="float32"), "float32", [[[1, 1]]]),
    (lambda: ops.ensure_shape([[1, 2]], (None, 2)), "int32", [[1, 2]]),
    (lambda: ops.shape([[1, 2, 3]], "int64"), "int64", [1, 3]),
    (lambda: ops.shape(3), "int32", []),
    (lambda: ops.size([[1, 2, 3]]), "int32", 3),
    (lambda: ops.rank([[1, 2, 3]]), "int32", 2),
]


@cases(("call", "dtype", "expected"), RESULTS)
def test_results(call: Callable[[], Any], dtype: str, expected: Any) -> None:
    for found in (call(), mr.function(call)()):
        assert found.dtype.name == dtype
        np.testing.assert_array_equal(found.numpy(), np.array(expected, dtype))


def test_ends_are_exact() -> None:
    numbers = ops.linspace(10.0, -3.3, 11).numpy()
    assert (numbers[0], numbers[-1]) == (np.float32(10.0), np.float32(-3.3))


@cases(
    ("call", "error", "message"),
    [
        (lambda: ops.range(5, 1), InvalidArgumentError, "start <= limit when delta > 0: 5/1"),
        (lambda: ops.range(1, 5, -1), InvalidArgumentError, "start >= limit when delta < 0: 1/5"),
        (lambda: ops.range(1, 5, 0), InvalidArgumentError, "Requires delta != 0: 0"),
        (lambda: ops.range([1, 2]), InvalidArgumentError, r"must be a scalar, not shape \[2\]"),
        (lambda: ops.range(2.5, dtype="int32"), TypeError, "Cannot convert 2.5"),
        (lambda: ops.range(True), InvalidArgumentError, "Received: bool"),
        (lambda: ops.linspace(0.0, 1.0, -1), InvalidArgumentError, "Received: num=-1"),
        (lambda: ops.linspace(0.0, 1.0, 5.5), TypeError, "Received: 5.5"),
        (lambda: ops.eye(-1), InvalidArgumentError, ">= 0"),
        (lambda: ops.one_hot([0.0], 3), InvalidArgumentError, "Received: float32"),
        (lambda: ops.one_hot(np.array([0.5]), 3), InvalidArgumentError, "Received: float64"),
        (lambda: ops.one_hot([0], 3, axis=2), InvalidArgumentError, r"between \[0, 1\]"),
        (lambda: ops.one_hot([0], 3, 5, 1.0), TypeError, "does not match"),
        (lambda: ops.meshgrid([1], indexing="zz"), ValueError, "either 'xy' or 'ij', got 'zz'"),
        (lambda: ops.sequence_mask([1], [2]), ValueError, "must be scalar"),
        (lambda: ops.ensure_shape([1], (2,)), InvalidArgumentError, r"expected shape \[2\]"),
        (lambda: ops.shape([1], "float32"), InvalidArgumentError, "Received: out_type=float32"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_recorded_function_knows_how_many() -> None:
    rows = mr.function(lambda x: ops.range(ops.shape(x)[0]))
    assert rows(ops.zeros((3, 2))).numpy().tolist() == [0, 1, 2]
    for count in (ops.range, ops.sequence_mask):
        with pytest.raises(OperatorNotAllowedInGraphError, match="while its function is being"):
            mr.function(count)(ops.constant(3))
