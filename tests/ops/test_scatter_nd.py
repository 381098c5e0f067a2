"""Updates by indices along several axes; the numbers are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def scattered(kind: str, *args: Any) -> Any:
    return getattr(mr, f"tensor_scatter_nd_{kind}")(*args)


@cases(
    ("kind", "elements", "rows"),
    [
        ("update", [[1.0, 0.0], [9.0, 4.0]], [[1.0, 2.0], [9.0, 0.0]]),
        ("add", [[1.0, 2.0], [12.0, 4.0]], [[1.0, 2.0], [17.0, 7.0]]),
        ("sub", [[1.0, 2.0], [-6.0, 4.0]], [[1.0, 2.0], [-11.0, 1.0]]),
        ("max", [[1.0, 2.0], [9.0, 4.0]], [[1.0, 2.0], [9.0, 4.0]]),
        ("min", [[1.0, 0.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 0.0]]),
    ],
)
def test_elements_and_rows(kind: str, elements: Any, rows: Any) -> None:
    of_elements = mr.function(lambda x, u: scattered(kind, x, [[1, 0], [0, 1]], u))
    of_rows = mr.function(lambda x, u: scattered(kind, x, [[[1], [1]]], u))
    x = ops.constant(X)
    for found in (
        scattered(kind, X, [[1, 0], [0, 1]], [9, 0]),
        of_elements(x, ops.constant([9.0, 0.0])),
    ):
        np.testing.assert_array_equal(found.numpy(), elements)
    for found in (
        scattered(kind, X, [[[1], [1]]], [[[5, 3], [9, 0]]]),
        of_rows(x, ops.constant([[[5.0, 3.0], [9.0, 0.0]]])),
    ):
        np.testing.assert_array_equal(found.numpy(), rows)


@cases(
    ("kind", "to_x", "to_updates"),
    [
        ("update", [1.0, 0.0, 3.0, 0.0], [2.0, 4.0, 2.0]),
        ("add", [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 2.0]),
        ("sub", [1.0, 2.0, 3.0, 4.0], [-2.0, -4.0, -2.0]),
        ("max", [1.0, 2 / 3, 3.0, 2.0], [2 / 3, 2.0, 2 / 3]),
        ("min", [1.0, 2 / 3, 3.0, 2.0], [2 / 3, 2.0, 2 / 3]),
    ],
)
def test_gradients(kind: str, to_x: list[float], to_updates: list[float]) -> None:
    """Where all are as great, they share what flows in; of updates the last one stays."""
    given = [ops.constant([1.0, 2.0, 3.0, 4.0]), ops.constant([2.0, 4.0, 2.0])]
    with mr.GradientTape() as tape:
        tape.watch(given)
        found = scattered(kind, given[0], [[1], [3], [1]], given[1])
        total = ops.reduce_sum(found * [1.0, 2.0, 3.0, 4.0])
    for slope, expected in zip(tape.gradient(total, given), (to_x, to_updates), strict=True):
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-6)


def test_in_zeros() -> None:
    found = mr.scatter_nd([[0, 1], [1, 0], [0, 1]], [1.0, 2.0, 3.0], [2, 2])
    np.testing.assert_array_equal(found.numpy(), [[0, 4], [2, 0]])
    either = mr.scatter_nd([[0], [0], [2]], [True, False, False], [3])
    np.testing.assert_array_equal(either.numpy(), [True, False, False])
    wrapped = mr.scatter_nd([[0], [0]], np.uint8([200, 100]), np.array([2]))
    np.testing.assert_array_equal(wrapped.numpy(), np.uint8([44, 0]))


def test_what_is_outside_can_be_ignored() -> None:
    indices, updates = [[0], [9], [-1]], [1, 2, 3]
    np.testing.assert_array_equal(mr.scatter_nd(indices, updates, [2], "IGNORE").numpy(), [1, 0])
    found = mr.tensor_scatter_nd_max([0, 5], indices, updates, "IGNORE")
    np.testing.assert_array_equal(found.numpy(), [1, 5])


@cases("kind", ["update", "min"])
@cases(
    ("indices", "updates", "text"),
    [
        ([[2]], [3], "indices[0] = [2] does not index into shape [2]"),
        ([[0], [-1]], [3, 4], "indices[1] = [-1] does not index into shape [2]"),
        (0, 3, "Indices shape must have rank at least one"),
        ([0], 3, "Updates shape must have rank at least one"),
        ([[0]], [3, 4], "Outer dimensions of indices and update must match"),
        ([[0, 0]], [3], "Inner dimensions of output shape must match"),
        ([[0.0]], [3], "attr 'Tindices' of float"),
        (np.zeros((1, 0), np.int32), [[3, 4]], "specified for empty output shape"),
    ],
)
def test_what_does_not_fit(kind: str, indices: Any, updates: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        scattered(kind, [1, 2], indices, updates)
    assert text in str(caught.value)


@cases(
    ("call", "error", "text"),
    [
        (lambda: mr.scatter_nd([[0]], [1], 8), InvalidArgumentError, "Shape must be a vector"),
        (lambda: mr.scatter_nd([[0]], [1], [-8]), InvalidArgumentError, "-8"),
        (lambda: mr.scatter_nd([[0]], [1], [8.0]), TypeError, "dtype int32"),
        (lambda: mr.scatter_nd([[0]], [1], [8], "no"), InvalidArgumentError, "policy 'no'"),
        (lambda: scattered("add", [1, 2], [[0]], [3.0]), TypeError, "dtype int32"),
        (lambda: scattered("add", [True], [[0]], [True]), InvalidArgumentError, "'T' of bool"),
    ],
)
def test_other_arguments(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
