"""Eigenvalues, singular values, orthogonal factors, and what is made of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.autodiff import GradientTape
from mirrored.errors import InvalidArgumentError

RNG = np.random.default_rng(6)
TALL, WIDE = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(2, 3, 4))
LOW = TALL[0] @ np.diag([1.0, 2.0, 0.0])


@cases("x", [TALL, WIDE])
@cases("full", [False, True])
def test_factors_make_the_matrix(x: Any, full: bool) -> None:
    s, u, v = ops.svd(x, full_matrices=full)
    p = min(x.shape[-2:])
    left, right = u.numpy()[..., :p], v.numpy()[..., :p]
    np.testing.assert_allclose(left * s.numpy()[:, None] @ right.swapaxes(1, 2), x, atol=1e-12)
    for each in (u, v):
        gram = each.numpy().swapaxes(1, 2) @ each.numpy()
        np.testing.assert_allclose(
            gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=1e-12
        )
    q, r = ops.qr(x, full_matrices=full)
    np.testing.assert_allclose((ops.matmul(q, r)).numpy(), x, atol=1e-12)
    assert u.shape[-1] == q.shape[-1] == (x.shape[-2] if full else p)


def test_eigenvectors() -> None:
    x = TALL[:, :3]
    values, vectors = ops.eigh(x)
    whole = np.tril(x) + np.tril(x, -1).swapaxes(1, 2)
    np.testing.assert_allclose(whole @ vectors.numpy(), vectors.numpy() * values.numpy()[:, None])
    np.testing.assert_allclose(ops.eigvalsh(x).numpy(), values.numpy())


@cases("x", [TALL, WIDE, LOW])
def test_pseudo_inverses_and_ranks(x: Any) -> None:
    np.testing.assert_allclose(ops.pinv(x).numpy(), np.linalg.pinv(x), atol=1e-12)
    np.testing.assert_array_equal(ops.matrix_rank(x).numpy(), np.linalg.matrix_rank(x))
    some = float(np.linalg.svd(x, compute_uv=False).reshape(-1)[1])
    np.testing.assert_array_equal(
        ops.matrix_rank(x, tol=some).numpy(), np.linalg.matrix_rank(x, tol=some)
    )


def test_integers_have_a_rank() -> None:
    assert int(ops.matrix_rank([[1, 2], [2, 4]])) == 1
    for call in (ops.pinv, ops.matrix_rank):
        with pytest.raises(TypeError, match=r"must have `float`-like `dtype` \(saw int32\)"):
            call(ops.constant([[1, 2], [2, 4]]))


def test_what_is_not_finite() -> None:
    x = np.stack([np.eye(2), [[np.inf, 1.0], [1.0, 1.0]]])
    for each in ops.svd(x):
        flat = each.numpy().reshape(2, -1)
        assert np.isnan(flat).all(axis=1).tolist() == [False, True]
    x[1, 0, 0] = np.nan
    with pytest.raises(InvalidArgumentError, match="Self-adjoint eigen decomposition was not succ"):
        ops.eigh(x)
    x[1] = [[1.0, np.nan], [0.0, 1.0]]  # It is not looked at.
    assert ops.eigvalsh(x).numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("function", [ops.svd, ops.qr])
def test_gradients_that_are_not_there(function: Callable[..., Any]) -> None:
    x = ops.constant(TALL)
    with GradientTape() as tape:
        tape.watch(x)
        result = function(x, full_matrices=True)[1]
    with pytest.raises(NotImplementedError, match="Use full_matrices=False"):
        tape.gradient(result, x)


def test_what_does_not_fit() -> None:
    for call in (ops.svd, ops.qr, ops.pinv):
        with pytest.raises(InvalidArgumentError, match=r"must have rank >= 2, got \[2\]"):
            call([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"must be square, got \[3,4\]"):
        ops.eigh(WIDE)
