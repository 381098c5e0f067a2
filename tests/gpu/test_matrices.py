"""Decompositions by cuSOLVER and cuBLAS, held to what they are by products in float64 of the host.

Batches of small matrices go to other functions of the libraries than larger ones do.
"""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
SHAPES = [(1, 1), (3, 40, 40), (200, 200), (2, 150, 150)]
GOOD, SINGULAR = np.diag([2.0, 3.0]), np.ones((2, 2))

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("card")]


def turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def wide(results: Any) -> list[Array]:
    """Return what was computed on the GPU, in float64."""
    tensors = results if isinstance(results, tuple) else (results,)
    assert all("GPU:0" in tensor.device for tensor in tensors)
    return [tensor.numpy().astype("float64") for tensor in tensors]


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", SHAPES)
def test_squares(shape: tuple[int, ...], dtype: str) -> None:
    rng, n = np.random.default_rng(7), shape[-1]
    drawn = rng.normal(size=shape) + 3 * np.sqrt(n) * np.eye(n)[rng.permutation(n)]
    a, gram = drawn.astype(dtype), (drawn @ turned(drawn) / n).astype(dtype)
    b = rng.normal(size=(*shape[:-1], 5)).astype(dtype)
    allowed = 64 * n * EPSILON[dtype]

    def close(result: Array, expected: Array) -> None:
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(result, expected, rtol=0, atol=allowed * scale)

    with mr.device("GPU:0"):
        for adjoint in (False, True):
            x = (turned(a) if adjoint else a).astype("float64")
            (inverse,) = wide(mr.linalg.inv(a, adjoint=adjoint))
            (solution,) = wide(mr.linalg.solve(a, b, adjoint=adjoint))
            close(x @ inverse, np.broadcast_to(np.eye(n), shape))
            close(x @ solution, b.astype("float64"))
        whole = (rng.normal(size=shape) / n + 2 * np.eye(n)).astype(dtype)
        for lower in (False, True):
            triangle = (np.tril if lower else np.triu)(whole.astype("float64"))
            (solution,) = wide(mr.linalg.triangular_solve(whole, b, lower=lower))
            close(triangle @ solution, b.astype("float64"))
            (solution,) = wide(mr.linalg.triangular_solve(whole, b, lower=lower, adjoint=True))
            close(turned(triangle) @ solution, b.astype("float64"))
        sign, logarithm = np.linalg.slogdet(a.astype("float64"))
        result = wide(mr.linalg.slogdet(a))
        assert (result[0] == sign).all()
        close(result[1], logarithm)
        (factor,) = wide(mr.linalg.cholesky(gram))
        assert not np.triu(factor, 1).any()
        close(factor @ turned(factor), gram.astype("float64"))
        values, vectors = wide(mr.linalg.eigh(gram))
        assert (np.diff(values) >= 0).all()
        close(gram.astype("float64") @ vectors, vectors * values[..., None, :])
        close(turned(vectors) @ vectors, np.broadcast_to(np.eye(n), shape))
        close(wide(mr.linalg.eigvalsh(gram))[0], values)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [(150, 40), (40, 150), (3, 7, 5), (3, 5, 7)])
@pytest.mark.parametrize("full", [False, True])
def test_other_shapes(shape: tuple[int, ...], dtype: str, full: bool) -> None:
    x = np.random.default_rng(8).normal(size=shape).astype(dtype)
    allowed = 64 * max(shape) * EPSILON[dtype]
    with mr.device("GPU:0"):
        q, r = wide(mr.linalg.qr(x, full_matrices=full))
        s, u, v = wide(mr.linalg.svd(x, full_matrices=full))
        (values,) = wide(mr.linalg.svd(x, compute_uv=False))
    least = s.shape[-1]
    for vectors in (q, u, v):
        product = turned(vectors) @ vectors
        np.testing.assert_allclose(product - np.eye(product.shape[-1]), 0, atol=allowed)
    np.testing.assert_allclose(q @ r, x, atol=allowed)
    np.testing.assert_allclose(values, s, atol=10 * allowed)
    assert (np.diff(s) <= 0).all()
    parts = u[..., :least] * s[..., None, :]
    np.testing.assert_allclose(parts @ turned(v[..., :least]), x, atol=10 * allowed)


@pytest.mark.parametrize("count", [1, 3])
def test_matrices_without_a_result(count: int) -> None:
    """A NaN ends, a matrix that is not positive definite is NaN, and a singular one an error."""
    with mr.device("GPU:0"):
        for bad in (np.full((2, 2), np.nan), np.array([[1.0, np.nan], [np.nan, 1.0]])):
            x = np.stack([GOOD] * (count - 1) + [bad])
            for function in (mr.linalg.inv, mr.linalg.det, lambda x: mr.linalg.svd(x)[0]):
                (result,) = wide(function(x))
                assert np.isfinite(result[:-1]).all()
                assert np.isnan(result[-1]).all()
            with pytest.raises(InvalidArgumentError, match="decomposition was not successful"):
                mr.linalg.eigh(x)
        (factors,) = wide(mr.linalg.cholesky(np.stack([GOOD] * (count - 1) + [-GOOD])))
        assert np.isfinite(factors[:-1]).all()
        assert np.isnan(factors[-1]).tolist() == [[True, False], [True, True]]
        x = mr.constant(np.stack([GOOD] * (count - 1) + [SINGULAR]))
        assert wide(mr.linalg.det(x))[0][-1] == 0
        for function in (mr.linalg.inv, lambda x: mr.linalg.solve(x, x)):
            recorded = mr.function(function)
            for call in (function, recorded, recorded):
                with pytest.raises(InvalidArgumentError, match="is not invertible"):
                    call(x)


def test_recorded_steps_repeat() -> None:
    """What cuSOLVER computes is in no CUDA graph; the step has it kernel by kernel."""
    rng = np.random.default_rng(9)
    x = mr.constant(rng.normal(size=(150, 150)) + 20 * np.eye(150))
    step = mr.function(lambda x: mr.linalg.inv(x) @ x)
    first, *others = (step(x).numpy() for _ in range(4))
    np.testing.assert_allclose(first, np.eye(150), atol=1e-10)
    assert all(other.tobytes() == first.tobytes() for other in others)
