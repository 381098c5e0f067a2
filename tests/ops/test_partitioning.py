"""Rows chosen, repeated, dealt out and put together; the numbers are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError

X = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
DEEP = np.array([[True, False, True], [False, True, True]])

SAME: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mask": (lambda x: mr.boolean_mask(x, [False, True]), lambda x: x[1:]),
    "mask of numbers": (lambda x: mr.boolean_mask(x, [0.0, -1.0]), lambda x: x[1:]),
    "mask of an axis": (
        lambda x: mr.boolean_mask(x, [True, False, True], axis=1),
        lambda x: x[:, [0, 2]],
    ),
    "mask of two axes": (lambda x: mr.boolean_mask(x, DEEP), lambda x: x[DEEP]),
    "mask of the last axes": (lambda x: mr.boolean_mask(x, DEEP.T, 1), lambda x: x[:, DEEP.T]),
    "repeat": (lambda x: mr.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "repeat rows": (lambda x: mr.repeat(x, [2], -2), lambda x: np.repeat(x, 2, -2)),
    "repeat some": (lambda x: mr.repeat(x, [0, 3, 1], 1), lambda x: np.repeat(x, [0, 3, 1], 1)),
    "repeat none": (lambda x: mr.repeat(x, [2, -1, 1], 1), lambda x: np.repeat(x, [2, 0, 1], 1)),
    "partition": (
        lambda x: mr.dynamic_partition(x, [[0, 1, 0], [1, 1, 0]], 3)[1],
        lambda x: x[[0, 1, 1], [1, 0, 1]],
    ),
    "stitch": (
        lambda x: mr.dynamic_stitch([[0, 4], 2], [x[:, 0], x[0, 1]]),
        lambda x: np.stack([x[0, 0], 0 * x[0, 0], x[0, 1], 0 * x[0, 0], x[1, 0]]),
    ),
}


@cases("name", SAME)
def test_as_in_numpy(name: str) -> None:
    """Eagerly and recorded; and the gradient brings each element back to its place."""
    function, reference = SAME[name]
    expected, x = reference(X), ops.constant(X)
    for found in (function(x), mr.function(function)(x)):
        np.testing.assert_array_equal(found.numpy(), expected)
    weights = np.random.default_rng(0).integers(1, 9, expected.shape).astype(np.float32)
    with mr.GradientTape() as tape:
        tape.watch(x)
        total = ops.reduce_sum(function(x) * weights)
    unit = np.eye(X.size, dtype=np.float32).reshape(X.size, *X.shape)
    slopes = [np.sum(reference(each) * weights) for each in unit]
    np.testing.assert_array_equal(tape.gradient(total, x).numpy().reshape(-1), slopes)


def test_of_several_rows_for_one_index_the_last_one_stays() -> None:
    found = mr.dynamic_stitch([[0, 2], [0]], [[1, 3], [2]])
    np.testing.assert_array_equal(found.numpy(), [2, 0, 3])


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.boolean_mask([1, 2], True), ValueError, "mask cannot be scalar"),
        (lambda: mr.boolean_mask([1, 2], [True]), ValueError, "(2,) and (1,) are incompatible"),
        (lambda: mr.boolean_mask([[1, 2]], [True], axis=-1), ValueError, "() and (1,)"),
        (lambda: mr.repeat([1, 2], 2.0), TypeError, "must be of type integer"),
        (lambda: mr.repeat([1, 2], -1), InvalidArgumentError, ">= 0, but got -1"),
        (lambda: mr.repeat([1, 2], [[1, 2]]), ValueError, "rank at most 1"),
        (lambda: mr.repeat([1, 2], [1, 2, 3]), ValueError, "2 and 3 are not compatible"),
        (lambda: mr.repeat([1, 2], 2, axis=1), ValueError, "expected -1<=axis<1"),
        (lambda: mr.repeat([1, 2], 2, axis=1.0), TypeError, "must be an int"),
        (lambda: mr.dynamic_partition([1], [2], 2), InvalidArgumentError, "[0] = 2 is not in"),
        (lambda: mr.dynamic_partition([1], [0], 0), InvalidArgumentError, "at least minimum 1"),
        (lambda: mr.dynamic_partition([1], [0, 1], 2), InvalidArgumentError, "must start with"),
        (lambda: mr.dynamic_partition([1], [0.0], 2), TypeError, "dtype int32"),
        (lambda: mr.dynamic_stitch([[0]], []), ValueError, "length 0 must match length 1"),
        (lambda: mr.dynamic_stitch([], []), InvalidArgumentError, "At least one tensor"),
        (lambda: mr.dynamic_stitch([[0, -1]], [[1, 2]]), InvalidArgumentError, "indices[1]"),
        (lambda: mr.dynamic_stitch([[0, 1]], [[1]]), InvalidArgumentError, "does not start with"),
        (lambda: mr.dynamic_stitch([0, 1], [[1, 2], [3]]), InvalidArgumentError, "Need data[0]"),
        (
            lambda: mr.dynamic_stitch([ops.constant(0, ops.int64)], [1]),
            InvalidArgumentError,
            "int64",
        ),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@cases(
    "function",
    [
        mr.boolean_mask,
        mr.repeat,
        lambda x, numbers: mr.dynamic_partition(x, numbers, 2),
        lambda x, numbers: mr.dynamic_stitch([numbers], [x]),
    ],
)
def test_how_many_rows_come_out_is_known_when_a_function_is_recorded(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(OperatorNotAllowedInGraphError, match=r"How many .* there are depends on"):
        mr.function(function)(ops.constant([1.0, 2.0]), ops.constant([0, 1]))
