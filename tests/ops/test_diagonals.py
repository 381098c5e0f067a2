"""Diagonals of matrices and matrices of diagonals, beside NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

X = np.arange(1.0, 25.0).reshape(2, 3, 4)


@cases("k", [0, 1, 3, -1, -2])
def test_one_diagonal(k: int) -> None:
    """It is taken, replaced and made into a matrix; and so is a gradient."""
    diagonal = np.diagonal(X, k, 1, 2)
    np.testing.assert_array_equal(ops.diag_part(X, k=k).numpy(), diagonal)
    expected = X.copy()
    places = np.eye(3, 4, k, dtype=bool)
    expected[:, places] = -diagonal
    x, new = ops.constant(X), ops.constant(-diagonal)
    with GradientTape(persistent=True) as tape:
        tape.watch([x, new])
        found = ops.set_diag(x, new, k=k)
        taken = ops.diag_part(x, k=k)
    np.testing.assert_array_equal(found.numpy(), expected)
    by_x, by_new = tape.gradient(found, [x, new])
    np.testing.assert_array_equal(by_x.numpy(), np.broadcast_to(~places, X.shape))
    np.testing.assert_array_equal(by_new.numpy(), np.ones_like(diagonal))
    by_x = np.asarray(tape.gradient(taken, x))
    np.testing.assert_array_equal(by_x, np.broadcast_to(places, X.shape))
    np.testing.assert_array_equal(ops.diag(diagonal[0], k=k).numpy(), np.diag(diagonal[0], k))


@cases(
    ("options", "shape"),
    [
        ({}, (2, 2)),
        ({"num_rows": 2, "num_cols": 3}, (2, 3)),
        ({"num_rows": 3}, (3, 2)),
        ({"k": 1, "num_cols": 5}, (2, 5)),
        ({"k": -1, "num_rows": 5, "num_cols": 2}, (5, 2)),
    ],
)
def test_matrices_of_other_shapes(options: dict[str, int], shape: tuple[int, int]) -> None:
    found = ops.diag([[1, 2], [3, 4]], padding_value=7, **options).numpy()
    places = np.eye(*shape, options.get("k", 0), dtype=bool)
    assert found.shape == (2, *shape)
    np.testing.assert_array_equal(found[:, places], [[1, 2], [3, 4]])
    assert (found[:, ~places] == 7).all()


def test_tensors_and_traces() -> None:
    made = ops.tensor_diag(X[0]).numpy()
    assert made.shape == (3, 4, 3, 4)
    np.testing.assert_array_equal(made.reshape(12, 12), np.diag(X[0].ravel()))
    np.testing.assert_array_equal(ops.tensor_diag_part(made).numpy(), X[0])
    np.testing.assert_array_equal(ops.trace(X).numpy(), np.trace(X, axis1=1, axis2=2))


@cases(
    ("call", "text"),
    [
        (lambda: ops.diag(1.0), "at least 1-dim"),
        (lambda: ops.diag([1.0, 2.0], num_rows=3, num_cols=3), "not consistent"),
        (lambda: ops.diag([1.0], align="LEFT"), "Value for attr 'align'"),
        (lambda: ops.diag_part([1.0]), "at least 2-dim"),
        (lambda: ops.diag_part(X, k=4), "out of bound: 4. It must be between -3 and 4"),
        (lambda: ops.set_diag(X, X[:, 0]), "Expected diagonal of shape"),
        (lambda: ops.band_part([1.0], 0, 0), "at least 2-dim"),
        (lambda: ops.band_part(X, [0], 0), "num_lower must be scalar, got shape"),
        (lambda: ops.band_part(X, 0.0, 0), "attr 'Tindex' of float"),
        (lambda: ops.band_part(X, 4, 0), "less or equal to number of rows .3. got: 4"),
        (lambda: ops.tensor_diag(1.0), "at least rank 1"),
        (lambda: ops.tensor_diag_part(X), "must be the second half"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        call()


@cases(("below", "above"), [(0, -1), (1, 0), (-2, 3), (3, 4)])
def test_band_part(below: int, above: int) -> None:
    """With zeros where there was NaN."""
    spoiled = np.where(np.eye(3, 4), X, np.nan)
    found = ops.band_part(spoiled, below, ops.constant(above, ops.int64)).numpy()
    kept = np.triu(np.ones((3, 4)), -below if below >= 0 else -3)
    kept = np.tril(kept, above if above >= 0 else 4).astype(bool)
    np.testing.assert_array_equal(found[:, kept], spoiled[:, kept])
    assert (found[:, ~kept] == 0).all()


def test_bands_are_refused() -> None:
    np.testing.assert_array_equal(ops.diag_part(X, k=(1, 1)).numpy(), np.diagonal(X, 1, 1, 2))  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="Call the function for each diagonal of a band"):
        ops.diag_part(X, k=(-1, 1))  # type: ignore[arg-type]
