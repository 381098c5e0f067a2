"""Counts, histograms and confusion matrices, by their public names, with TensorFlow's results."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

INF, NAN = np.inf, np.nan
COUNTED = [[1, 1], [3, 0]]


@cases(
    ("options", "dtype", "expected"),
    [
        ({}, "int32", [1, 2, 0, 1]),
        ({"axis": 0, "dtype": "float64"}, "float64", [1, 2, 0, 1]),
        ({"axis": -1}, "int32", [[0, 2, 0, 0], [1, 0, 0, 1]]),
        ({"axis": -1, "binary_output": True}, "int32", [[0, 1, 0, 0], [1, 0, 0, 1]]),
        ({"weights": [[0.5, 1.0], [2.0, 3.0]]}, "float32", [3.0, 1.5, 0.0, 2.0]),
        ({"weights": COUNTED, "dtype": "float32"}, "int32", [0, 2, 0, 3]),
        ({"minlength": 6}, "int32", [1, 2, 0, 1, 0, 0]),
        ({"maxlength": 2}, "int32", [1, 2]),
        ({"minlength": 6, "maxlength": 5}, "int32", [1, 2, 0, 1, 0]),
    ],
)
def test_counts(options: Any, dtype: str, expected: Any) -> None:
    found = ops.bincount(COUNTED, **options)
    assert (found.dtype.name, found.numpy().tolist()) == (dtype, expected)
    lengths = dict.fromkeys(("minlength", "maxlength"), found.shape[-1])
    recorded = mr.function(lambda x: ops.bincount(x, **{**options, **lengths}))
    again = recorded(ops.constant(COUNTED))
    assert (again.dtype.name, again.numpy().tolist()) == (dtype, expected)


def test_what_is_counted() -> None:
    assert ops.bincount([1.5, True]).numpy().tolist() == [0, 2]
    assert ops.bincount(2).numpy().tolist() == [0, 0, 1]
    assert ops.bincount([]).numpy().tolist() == []
    found = ops.bincount([1, 1], weights=np.zeros(0))
    assert (found.dtype, found.numpy().tolist()) == (ops.float64, [0.0, 2.0])


@cases(
    ("arr", "options", "message"),
    [
        ([1, -1], {}, "must be non-negative"),
        ([1, 1], {"weights": [1.0]}, "must be the same shape"),
        ([1, 1], {"maxlength": -1}, "must be non-negative"),
        ([[[1]]], {"axis": -1}, "at most rank 2 but is rank 3"),
        (np.array([1], np.uint8), {}, "attr 'T' of uint8"),
        ([1], {"axis": 1}, "Only 0 and -1"),
        ([1], {"weights": [1.0], "binary_output": True}, "mutually exclusive"),
    ],
)
def test_what_is_not_counted(arr: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.bincount(arr, **options)


def test_counts_of_nobody_knows_how_many() -> None:
    with pytest.raises(OperatorNotAllowedInGraphError):
        mr.function(ops.bincount)(ops.constant([1, 0]))
    recorded = mr.function(lambda x: ops.bincount(x, minlength=2, maxlength=2))
    assert recorded(ops.constant([1, 1, 5])).numpy().tolist() == [0, 2]
    with pytest.raises(InvalidArgumentError, match="DenseBincount"):
        recorded(ops.constant([1, -1, 5]))


X = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]


@cases(
    ("values", "limits", "nbins", "expected"),
    [
        (X, [0.0, 5.0], 5, [2, 1, 1, 0, 2]),
        (np.array(X), [0.0, 5.0], 5, [2, 1, 1, 0, 2]),
        ([[1, 2], [3, 9]], [0, 10], 3, [3, 0, 1]),
        ([INF, -INF], [0.0, 5.0], 3, [1, 0, 1]),
        # As single precision has them.
        ([0.1 * i for i in range(10)], [0.0, 1.0], 10, [1, 1, 1, 1, 1, 1, 2, 0, 2, 0]),
        ([], [0.0, 5.0], 3, [0, 0, 0]),
    ],
)
def test_a_histogram(values: Any, limits: Any, nbins: int, expected: list[int]) -> None:
    recorded = mr.function(lambda x: ops.histogram_fixed_width(x, limits, nbins, dtype="int64"))
    for histogram in (
        ops.histogram_fixed_width(values, limits, nbins, "int64"),
        recorded(ops.constant(values)),
    ):
        assert (histogram.dtype, histogram.numpy().tolist()) == (ops.int64, expected)


@cases(
    ("values", "limits", "nbins", "message"),
    [
        ([1.0], [5.0, 0.0], 5, "value_range.0. < value_range.1., but got '.5.0, 0.0.'"),
        ([1.0], [0.0, 5.0, 6.0], 5, "a vector of 2 elements"),
        ([1.0], [0.0, 5.0], 0, "a positive number, but got '0'"),
        ([NAN], [0.0, 5.0], 5, "must not contain NaN"),
        (np.array([1.0]), np.array([0.0, 5.0], np.float32), 5, "expected to be a double tensor"),
    ],
)
def test_no_histogram(values: Any, limits: Any, nbins: int, message: str) -> None:
    given = [ops.constant(each) for each in (values, limits)]
    with pytest.raises(InvalidArgumentError, match=message):
        ops.histogram_fixed_width(*given, nbins)


def test_the_part_that_each_value_is_in() -> None:
    for function in (ops.histogram_fixed_width_bins, mr.function(ops.histogram_fixed_width_bins)):
        found = function(ops.constant(X), [0.0, 5.0], 5)
        assert (found.dtype, found.numpy().tolist()) == (ops.int32, [0, 0, 1, 2, 4, 4])
    with pytest.raises(InvalidArgumentError, match="nbins must be > 0"):
        ops.histogram_fixed_width_bins(X, [0.0, 5.0], 0)
    with pytest.raises(InvalidArgumentError, match="int32 tensor but is a double"):
        ops.histogram_fixed_width_bins([1, 2], [0, 5], 5)


def test_a_confusion_matrix() -> None:
    rng = np.random.default_rng(4)
    labels, predictions = rng.integers(0, 4, (2, 30))
    weights = rng.normal(size=30)
    expected = np.zeros((5, 5))
    np.add.at(expected, (labels, predictions), weights)

    @mr.function
    def recorded(*given: ops.Tensor) -> ops.Tensor:
        return ops.confusion_matrix(given[0], given[1], 5, given[2], ops.float64)

    given = [ops.constant(each) for each in (labels, predictions[:, None], weights)]
    np.testing.assert_allclose(recorded(*given).numpy(), expected, rtol=1e-13)
    found = ops.confusion_matrix(given[0], given[1])
    assert found.dtype == ops.int32
    counts = np.zeros((4, 4), int)
    np.add.at(counts, (labels, predictions), 1)
    assert found.numpy().tolist() == counts.tolist()
    with pytest.raises(OperatorNotAllowedInGraphError):
        mr.function(ops.confusion_matrix)(*given[:2])
    with pytest.raises(InvalidArgumentError, match=r"\[5, 0\] does not index into shape \[5,5\]"):
        recorded(ops.constant([5] * 30), ops.constant([0] * 30), given[2])


@cases(
    ("labels", "predictions", "options", "message"),
    [
        ([1, 4], [0, 0], {"num_classes": 4}, "`labels` out of bound"),
        ([0, 0], [1, -1], {}, "`predictions` contains negative values"),
        ([1, 2], [1, 2, 3], {}, "Shapes of all inputs must match"),
        ([[1, 2]], [[1, 2]], {}, "must be vectors"),
        ([], [], {}, "Give `num_classes`"),
        ([1, 2], [1, 2], {"weights": [1]}, "are incompatible"),
    ],
)
def test_no_confusion_matrix(labels: Any, predictions: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.confusion_matrix(labels, predictions, **options)
