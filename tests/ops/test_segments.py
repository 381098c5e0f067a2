"""Segments of rows; the numbers are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import math, ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

NAN, INF = np.nan, np.inf
LEAST, MOST = np.finfo(np.float32).min, np.finfo(np.float32).max


@cases(
    ("name", "data", "expected"),
    [
        ("unsorted_segment_mean", [1, 2, 3, 4], np.array([2.0, 2.0, 0.0, 4.0, 0.0])),
        ("unsorted_segment_sqrt_n", [1.0, 2.0, 3.0, 4.0], [4 / 2**0.5, 2.0, 0.0, 4.0, 0.0]),
        ("unsorted_segment_prod", [3, 2, 5, 4], [15, 2, 1, 4, 1]),
        ("unsorted_segment_max", [1.0, 2.0, 3.0, -INF], [3.0, 2.0, LEAST, LEAST, LEAST]),
        ("unsorted_segment_min", [1.0, 2.0, 3.0, INF], [1.0, 2.0, MOST, MOST, MOST]),
        ("unsorted_segment_max", [NAN, NAN, 3.0, 1.0], [3.0, NAN, LEAST, 1.0, LEAST]),
        ("unsorted_segment_min", [3.0, 1.0, NAN, 1.0], [NAN, 1.0, MOST, 1.0, MOST]),
        ("unsorted_segment_max", [1, 2, 3, 4], [3, 2, -(2**31), 4, -(2**31)]),
        ("unsorted_segment_min", np.uint8([1, 2, 3, 4]), np.uint8([1, 2, 255, 4, 255])),
    ],
)
def test_in_any_order(name: str, data: Any, expected: Any) -> None:
    given, ids = ops.constant(data), ops.constant([0, 1, 0, 3])
    recorded = mr.function(lambda x, i: getattr(math, name)(x, i, 5))
    wanted = ops.constant(expected)
    for found in (getattr(math, name)(given, ids, 5), recorded(given, ids)):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_rows_of_no_segment() -> None:
    assert math.unsorted_segment_max([1.0, NAN], [-1, -1], 0).shape == (0,)
    np.testing.assert_array_equal(math.unsorted_segment_min([1, 2], [-1, -5], 1).numpy(), 2**31 - 1)


@cases(
    ("name", "data", "expected"),
    [
        ("segment_sum", [[1, 2], [3, 4], [5, 6]], [[4, 6], [0, 0], [5, 6]]),
        ("segment_prod", [[1, 2], [3, 4], [5, 6]], [[3, 8], [1, 1], [5, 6]]),
        ("segment_mean", [[1, 2], [2, -5], [5, -6]], [[1, -1], [0, 0], [5, -6]]),
        ("segment_mean", np.uint8([7, 8, 9]), np.uint8([7, 0, 9])),
        ("segment_max", [1.0, NAN, -INF], [NAN, 0.0, -INF]),
        ("segment_max", [NAN, 1.0, 2.0], [1.0, 0.0, 2.0]),
        ("segment_min", [1, -7, 3], [-7, 0, 3]),
        ("segment_min", [1.0, 2.0, INF], [1.0, 0.0, INF]),
    ],
)
def test_in_order(name: str, data: Any, expected: Any) -> None:
    found, wanted = getattr(math, name)(data, [0, 0, 2]), ops.constant(expected)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@cases(
    ("call", "text"),
    [
        (lambda: math.segment_sum([1.0, 2.0], [1, 0]), "segment ids are not increasing"),
        (lambda: math.segment_max([1.0, 2.0], [-1, 0]), "Segment id -1 out of range [0, 1)"),
        (lambda: math.segment_min([1.0, 2.0], [0]), "same size as dimension 0 of input"),
        (lambda: math.segment_mean([1.0, 2.0], [[0, 1]]), "segment_ids should be a vector"),
        (lambda: math.segment_prod(1.0, [0]), "input must be at least rank 1"),
        (lambda: math.segment_sum([True], [0]), "attr 'T' of bool"),
        (lambda: math.unsorted_segment_sqrt_n([1, 2], [0, 0], 1), "attr 'T' of int32"),
        (lambda: math.unsorted_segment_max([1.0], [4], 4), "is out of range [0, 4)"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert text in str(caught.value)


def test_how_many_segments_there_are_is_known_when_a_function_is_recorded() -> None:
    known = mr.function(lambda x: math.segment_max(x, [0, 0, 2]))
    np.testing.assert_array_equal(known(ops.constant([3, 4, 5])).numpy(), [4, 0, 5])
    fed = mr.function(math.segment_sum)
    with pytest.raises(OperatorNotAllowedInGraphError, match=r"Use `math\.unsorted_segment_sum`"):
        fed(ops.constant([1.0, 2.0]), ops.constant([0, 1]))


@cases(
    ("name", "x", "slopes"),
    [
        # Rows that are the extreme share what flows in.
        ("unsorted_segment_max", [1.0, 2.0, 1.0, 5.0, 3.0], [0.5, 0.0, 0.5, 2.0, 0.0]),
        ("unsorted_segment_min", [1.0, 2.0, 1.0, 5.0, 3.0], [0.5, 2.0, 0.5, 0.0, 0.0]),
        ("unsorted_segment_prod", [1.0, 2.0, 4.0, 5.0, 3.0], [4.0, 10.0, 1.0, 4.0, 0.0]),
        # Of one factor that is 0, and of two.
        ("unsorted_segment_prod", [0.0, 0.0, 4.0, 0.0, 3.0], [4.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_gradients(name: str, x: list[float], slopes: list[float]) -> None:
    given = ops.constant(x)
    with mr.GradientTape() as tape:
        tape.watch(given)
        found = getattr(math, name)(given, [0, 1, 0, 1, -1], 3)
        total = ops.reduce_sum(found * [1.0, 2.0, 0.0])
    np.testing.assert_allclose(tape.gradient(total, given).numpy(), slopes)
