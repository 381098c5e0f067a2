"""Rows of a table by ids; the numbers are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import nn, ops
from mirrored.errors import InvalidArgumentError

TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("ids", "max_norm", "expected"),
    [
        ([[2, 0], [1, 1]], None, [[[5, 6], [1, 2]], [[3, 4], [3, 4]]]),
        (1, None, [3, 4]),
        ([2, 0], 6.0, [[3.841107, 4.609329], [1, 2]]),
        ([[1], [1]], 1.0, [[[0.6, 0.8]], [[0.6, 0.8]]]),
    ],
)
def test_rows_and_their_norms(ids: Any, max_norm: float | None, expected: Any) -> None:
    table = mr.Variable(TABLE)
    parts = [ops.constant(TABLE[:2]), ops.constant(TABLE[2:])]
    recorded = mr.function(lambda i: nn.embedding_lookup(table, i, max_norm))
    for found in (
        nn.embedding_lookup(table, ids, max_norm),
        nn.embedding_lookup(parts, ids, max_norm),
        recorded(ops.constant(ids)),
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_the_gradient_is_dense_and_adds_up_rows() -> None:
    table = mr.Variable(TABLE)
    with mr.GradientTape() as tape:
        total = ops.reduce_sum(nn.embedding_lookup(table, [2, 0, 2]) * [[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(tape.gradient(total, table).numpy(), [[2, 2], [0, 0], [4, 4]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.embedding_lookup(None, [0]), ValueError, "params must be specified"),
        (lambda: nn.embedding_lookup([], [0]), ValueError, "Need at least one param"),
        (lambda: nn.embedding_lookup([[1.0], [2.0, 3.0]], [0]), ValueError, "may have one more"),
        (lambda: nn.embedding_lookup([TABLE], [3]), InvalidArgumentError, "= 3 is not in [0, 3)"),
        (lambda: nn.embedding_lookup([TABLE], [1.0]), InvalidArgumentError, "'Tindices' of float"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
