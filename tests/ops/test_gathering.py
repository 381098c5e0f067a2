"""Elements by their places, with indices and batches of any rank; what is outside is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import nn, ops
from mirrored.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def per_batch(function: Callable[[Array, Array], Array], x: Array, indices: Any) -> Array:
    """Return what a function gives for each of the first axis's elements of both."""
    return np.stack([function(*each) for each in zip(x, np.array(indices), strict=True)])


SAME: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "rows": (lambda x: ops.gather(x, [1, 0, 1]), lambda x: x[[1, 0, 1]]),
    "one row": (lambda x: ops.gather(x, 1), lambda x: x[1]),
    "a middle axis": (
        lambda x: ops.gather(x, [[2, 0], [0, 0]], axis=-2),
        lambda x: x[:, [[2, 0], [0, 0]]],
    ),
    "the last axis": (lambda x: ops.gather(x, [3, 3], axis=2), lambda x: x[..., [3, 3]]),
    "no rows": (lambda x: ops.gather(x, np.zeros(0, np.int64), axis=1), lambda x: x[:, :0]),
    "of batches": (
        lambda x: ops.gather(x, [[2, 0], [1, 1]], batch_dims=1),
        lambda x: per_batch(lambda a, i: a[i], x, [[2, 0], [1, 1]]),
    ),
    "of batches, from the end": (
        lambda x: ops.gather(x, [[2, 0], [1, 3]], batch_dims=-1, axis=-1),
        lambda x: per_batch(lambda a, i: a[:, i], x, [[2, 0], [1, 3]]),
    ),
    "of batches of batches": (
        lambda x: ops.gather(x, [[1, 0, 3], [2, 2, 2]], batch_dims=2),
        lambda x: np.take_along_axis(x, np.array([[1, 0, 3], [2, 2, 2]])[..., None], 2)[..., 0],
    ),
    "elements": (
        lambda x: ops.gather_nd(x, [[1, 2, 3], [0, 0, 0], [1, 2, 3]]),
        lambda x: x[[1, 0, 1], [2, 0, 2], [3, 0, 3]],
    ),
    "slices": (
        lambda x: ops.gather_nd(x, [[[1, 2]], [[0, 0]]]),
        lambda x: x[[[1], [0]], [[2], [0]]],
    ),
    "all, twice": (
        lambda x: ops.gather_nd(x, np.zeros((2, 0), np.int32)),
        lambda x: np.stack([x, x]),
    ),
    "elements of batches": (
        lambda x: ops.gather_nd(x, [[[2, 3], [0, 1]], [[1, 1], [1, 1]]], batch_dims=1),
        lambda x: per_batch(lambda a, i: a[tuple(i.T)], x, [[[2, 3], [0, 1]], [[1, 1], [1, 1]]]),
    ),
    "what is not outside": (
        lambda x: ops.gather_nd(x, [[1, 2], [0, 3], [-1, 0]], bad_indices_policy="IGNORE"),
        lambda x: np.stack([x[1, 2], 0 * x[0, 0], 0 * x[0, 0]]),
    ),
    "sums": (
        lambda x: ops.unsorted_segment_sum(x, [[3, 0, 3], [-1, 0, 0]], 4),
        lambda x: np.stack(
            [x[0, 1] + x[1, 1] + x[1, 2], 0 * x[0, 0], 0 * x[0, 0], x[0, 0] + x[0, 2]]
        ),
    ),
}


@cases("name", SAME)
def test_as_in_numpy(name: str) -> None:
    """Eagerly and recorded; and the gradients of both orders are those of a linear function."""
    function, reference = SAME[name]
    expected = reference(X)
    x = ops.constant(X)
    for found in (function(x), mr.function(function)(x)):
        np.testing.assert_array_equal(found.numpy(), expected)
    weights = np.random.default_rng(0).integers(1, 9, expected.shape).astype(np.float32)
    with mr.GradientTape() as outer:
        outer.watch(x)
        with mr.GradientTape() as tape:
            tape.watch(x)
            total = ops.reduce_sum(ops.square(function(x)) * weights)
        slopes = tape.gradient(total, x)
        again = ops.reduce_sum(slopes)
    unit = np.eye(X.size, dtype=np.float32).reshape(X.size, *X.shape)
    ways = np.stack([reference(each) for each in unit]).reshape(X.size, -1)
    along = 2.0 * weights.reshape(-1) * ways
    np.testing.assert_allclose(slopes.numpy().reshape(-1), along @ expected.reshape(-1))
    np.testing.assert_allclose(
        outer.gradient(again, x).numpy().reshape(-1), along @ ways.sum(axis=0)
    )


@pytest.mark.behaviour("indices-outside")
@cases(
    ("call", "text"),
    [
        (lambda i: ops.gather(X, i[0, 0]), "indices = 5 is not in [0, 2) [Op:GatherV2]"),
        (lambda i: ops.gather(X, -i, axis=1), "indices[0,0] = -5 is not in [0, 3)"),
        (lambda i: ops.gather(X, i, batch_dims=1), "indices[0,0] = 5 is not in [0, 3)"),
        (lambda i: ops.gather_nd(X, i), "indices[0] = [5, 1, 0] does not index into shape [2,3,4]"),
        (
            lambda i: ops.gather_nd(X, i[:, :, None], batch_dims=1),
            "indices[0,0] = [0, 5] does not index into shape [2,3] [Op:GatherNd]",
        ),
        (lambda i: ops.unsorted_segment_sum(X[0], i[0], 5), "segment_ids[0] = 5 is out of range"),
    ],
)
def test_what_is_outside(call: Callable[[Any], Any], text: str) -> None:
    """In a recorded function as well, each time, with indices that are given to it."""
    fine, wrong = np.zeros((2, 3), np.int32), np.array([[5, 1, 0], [0, 0, 0]], np.int32)
    recorded = mr.function(call)
    recorded(ops.constant(fine))
    for each in (call, recorded, recorded):
        with pytest.raises(InvalidArgumentError) as caught:
            each(ops.constant(wrong))
        assert text in str(caught.value)


@cases(
    ("call", "error"),
    [
        (lambda: ops.gather(X, [1.0]), "attr 'Tindices' of float"),
        (lambda: ops.gather(X, [0], axis=1.5), "attr 'Taxis' of float"),
        (lambda: ops.gather(X, [0], axis=[1]), "axis must be scalar"),
        (lambda: ops.gather(X, [0], axis=3), "at least rank 4 but is rank 3"),
        (lambda: ops.gather(3.0, [0]), "at least 1 dimensional"),
        (lambda: ops.gather(X, [[0], [0]], batch_dims=3), "batch_dims in the range [-2, 2]"),
        (lambda: ops.gather(X, [[0]], batch_dims=1), "params.shape[0]: 2 should be equal to"),
        (lambda: ops.gather(X, [[0], [0]], axis=1, batch_dims=2), "less than or equal to axis"),
        (lambda: ops.gather_nd(X, 1), "indices must be at least a vector"),
        (lambda: ops.gather_nd(X, [[0, 0, 0, 0]]), "saw: 4 vs. 3"),
        (lambda: ops.gather_nd(np.ones([1] * 8), [[0] * 8]), "between 1 and 7 are currently"),
        (lambda: ops.gather_nd(X, [[0]], batch_dims=1), "first 1 axes of params and indices"),
        (lambda: ops.gather_nd(X, [0], bad_indices_policy="X"), "Bad indices policy 'X'"),
        (lambda: ops.unsorted_segment_sum(X, [0], 1), "does not start with segment_ids.shape"),
        (lambda: ops.unsorted_segment_sum(X, [0, 0], [1]), "num_segments should be a scalar"),
        (lambda: ops.unsorted_segment_sum(X, [0, 0], -1), "must not be negative"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert error in str(caught.value)


@pytest.mark.behaviour("indices-outside")
def test_in_fit_an_index_outside_stops_the_step() -> None:
    """Labels are looked at before; other integers are not."""

    class Rows(mr.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.table = self.add_weight(shape=(3, 2), initializer="ones", name="table")

        def call(self, inputs: Any) -> Any:
            return ops.gather(self.table, ops.cast(inputs[:, 0], ops.int32))

    model = mr.Sequential([mr.layers.Input((1,)), Rows()])
    model.compile("sgd", "mse")
    x = np.array([[0.0], [2.0], [2.0], [1.0]], np.float32)
    model.fit(x, np.zeros((4, 2), np.float32), batch_size=4, verbose=0)
    (kept,) = model.get_weights()
    np.testing.assert_allclose(kept, [[0.9975] * 2, [0.9975] * 2, [0.995] * 2], rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 3\)"):
        model.fit(x + x[::-1], np.zeros((4, 2)), batch_size=4, shuffle=False, verbose=0)
    np.testing.assert_array_equal(model.get_weights()[0], kept)


# ---------------------------------------------------------------------------- rows by ids

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
def test_ids_that_do_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
