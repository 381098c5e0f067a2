"""Decompositions on the emulated card: what the table of ops does not say of them."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.backends.cuda.kernels import matrices
from mirrored.errors import InvalidArgumentError, ResourceExhaustedError
from mirrored.ops.op import OPS

Array = np.ndarray[Any, Any]
DRAWN = np.random.default_rng(5)
GOOD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]])
HOLED = np.where(np.eye(3, k=-1) > 0, np.nan, GOOD)


def turned(x: Array) -> Array:
    return x.swapaxes(-1, -2)


@cases("shape", [(6, 3), (3, 6), (2, 5, 2), (2, 1, 4), (3, 0), (0, 3)], clean=False)
@cases("full", [False, True], clean=False)
def test_factors_of_what_is_not_square(card: Any, shape: tuple[int, ...], full: bool) -> None:
    del card
    x, (m, n) = DRAWN.normal(size=shape), shape[-2:]
    with mr.device("GPU:0"):
        q, r = (tensor.numpy() for tensor in mr.linalg.qr(x, full_matrices=full))
        s, u, v = (tensor.numpy() for tensor in mr.linalg.svd(x, full_matrices=full))
    least = min(m, n)
    assert (q.shape[-1], u.shape[-1], v.shape[-1]) == ((m, m, n) if full else (least,) * 3)
    for vectors in (q, u, v):
        identity = np.broadcast_to(
            np.eye(vectors.shape[-1]), (*shape[:-2], *vectors.shape[-1:] * 2)
        )
        np.testing.assert_allclose(turned(vectors) @ vectors, identity, atol=1e-12)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    assert not np.tril(r, -1).any()
    values = np.linalg.svd(x, compute_uv=False) if least else s
    np.testing.assert_allclose(s, values, atol=1e-12)
    np.testing.assert_allclose(
        u[..., :least] * s[..., None, :] @ turned(v[..., :least]), x, atol=1e-12
    )


OF_SQUARES: dict[str, tuple[dict[str, Any], ...]] = {
    "Cholesky": ({},),
    "LogMatrixDeterminant": ({},),
    "MatrixDeterminant": ({},),
    "MatrixInverse": ({"adjoint": False}, {"adjoint": True}),
    "MatrixSolve": ({"adjoint": False}, {"adjoint": True}),
    "MatrixTriangularSolve": tuple(
        {"lower": lower, "adjoint": adjoint} for lower in (False, True) for adjoint in (False, True)
    ),
}


@pytest.mark.parametrize("small", [0, 128])
@pytest.mark.parametrize("name", OF_SQUARES)
def test_batches_at_once_and_one_by_one(
    card: Any, monkeypatch: pytest.MonkeyPatch, name: str, small: int
) -> None:
    """Rows are exchanged in each of the matrices, and in their right sides."""
    monkeypatch.setattr(matrices, "_SMALL", small)
    x = DRAWN.normal(size=(3, 6, 6)) + 4 * np.eye(6)[DRAWN.permutation(6)]
    if name == "Cholesky":
        x = x @ turned(x)
    rhs = [DRAWN.normal(size=(3, 6, 2))] if "Solve" in name else []
    for attrs in OF_SQUARES[name]:
        result, expected = both(name, x, *rhs, **attrs)
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


def both(name: str, *arrays: Array, **attrs: Any) -> list[Array]:
    """Return the results of the card and of the host."""
    results = []
    for device in ("GPU:0", "CPU:0"):
        with mr.device(device):
            y = OPS[name](*map(ops.constant, arrays), **attrs)
            assert device in y.device
            results.append(y.numpy())
    return results


@pytest.mark.parametrize("small", [0, 128])
def test_hard_matrices_are_as_on_the_host(
    card: Any, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(matrices, "_SMALL", small)
    x, infinite = np.stack([GOOD, SINGULAR, HOLED, -GOOD]), np.stack([GOOD, GOOD * np.inf])
    for name in ("Cholesky", "LogMatrixDeterminant", "MatrixDeterminant"):
        np.testing.assert_allclose(*both(name, x), rtol=1e-12, atol=1e-12)
    for name, *rest in (("MatrixInverse",), ("MatrixSolve", np.ones((2, 3, 1)))):
        np.testing.assert_allclose(*both(name, x[::2], *rest, adjoint=False), rtol=1e-12)
    attrs = {"full_matrices": False, "compute_uv": False}
    np.testing.assert_allclose(*both("Svd", infinite, **attrs), rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="The input might not be valid"):
        both("SelfAdjointEigV2", infinite, compute_v=True)
    # Products of its factors on the way would be infinite.
    large = np.diag([1e200, 1e200, 1e-200, 1e-200, 3.0])
    np.testing.assert_allclose(both("MatrixDeterminant", large)[0], 3.0, rtol=1e-12)


FAILURES: dict[str, tuple[Callable[[Any], Any], Array]] = {
    "Input is not invertible. [Op:MatrixInverse]": (mr.linalg.inv, SINGULAR),
    "Input matrix is not invertible. [Op:MatrixSolve]": (
        lambda x: mr.linalg.solve(x, x),
        SINGULAR,
    ),
    "decomposition was not successful. The input might not be valid. [Op:SelfAdjointEigV2]": (
        mr.linalg.eigvalsh,
        HOLED,
    ),
}


@pytest.mark.behaviour("matrices-on-cards")
@cases("message", FAILURES, clean=False)
@cases("alone", [False, True], clean=False)
def test_a_matrix_without_a_result(card: Any, message: str, alone: bool) -> None:
    """It is an error in each call, eager or recorded, and nothing is written then."""
    del card
    function, bad = FAILURES[message]
    x = bad if alone else np.stack([GOOD, bad])
    good = GOOD if alone else np.stack([GOOD, GOOD])
    for device in ("GPU:0", "CPU:0"):
        with mr.device(device):
            total = mr.Variable(0.0, dtype="float64")
            recorded = mr.function(lambda x, v=total: v.assign_add(mr.reduce_sum(function(x))))
            expected = float(mr.reduce_sum(function(mr.constant(good))))
            for call in (function, recorded, recorded, recorded):
                with pytest.raises(InvalidArgumentError, match=re.escape(message)):
                    call(mr.constant(x))
            np.testing.assert_allclose(float(total), 0.0)
            np.testing.assert_allclose(float(recorded(mr.constant(good))), expected)


def test_scratch_memory_counts_in_the_device_s(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    (gpu,) = mr.config.list_physical_devices("GPU")
    limit = mr.config.LogicalDeviceConfiguration(memory_limit=1)
    mr.config.set_logical_device_configuration(gpu, [limit])
    memory = mr.config.experimental.get_memory_info
    with mr.device("GPU:0"):
        x = mr.constant(DRAWN.normal(size=(250, 250)) + 40 * np.eye(250))
        before = memory("GPU:0")["current"]
        with pytest.raises(ResourceExhaustedError):
            mr.linalg.inv(x)
        assert memory("GPU:0")["current"] == before
        assert "GPU:0" in mr.linalg.triangular_solve(x, x).device  # It needs no copy.


def test_what_may_wait_is_in_no_graph(emulated_cuda: Callable[..., Any]) -> None:
    emulator = emulated_cuda()
    x, triangle = mr.constant(GOOD), mr.constant(np.tril(GOOD))
    for function, captured in (
        (lambda x: mr.linalg.triangular_solve(triangle, x) * 2.0, True),
        (lambda x: mr.linalg.inv(x) * 2.0, False),
        (lambda x: mr.linalg.inv(mr.stack([x, x])) * 2.0, False),
        (lambda x: mr.linalg.det(mr.stack([x, x])) * 2.0, True),
    ):
        emulator.counts["graphs"] = 0
        recorded, eager = mr.function(function), function(x).numpy()
        for _ in range(3):
            assert recorded(x).numpy().tolist() == eager.tolist()
        assert bool(emulator.counts["graphs"]) == captured


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (2, ResourceExhaustedError, r"cuSOLVER has too little .*_ALLOC_FAILED \(2\)"),
        (1, RuntimeError, r"cuSOLVER refused .*cusolverDnDgetrf .*_EXECUTION_FAILED \(6\)"),
    ],
)
def test_a_routine_that_fails(
    emulated_cuda: Callable[..., Any], status: int, error: type[Exception], said: str
) -> None:
    emulator = emulated_cuda()
    x = mr.constant(GOOD)
    emulator.fail("cusolverDnDgetrf", status)
    with pytest.raises(error, match=said):
        mr.linalg.inv(x)
    np.testing.assert_allclose((mr.linalg.inv(x) @ x).numpy(), np.eye(3), atol=1e-12)


def test_sides_that_the_libraries_cannot_take() -> None:
    specs = [((0, 2, 2), np.dtype("f4")), ((0, 2, 1 << 31), np.dtype("f4"))]
    with pytest.raises(InvalidArgumentError, match=r"below 2\*\*31. Received: shape \(0, 2, 21"):
        matrices.KERNELS["MatrixTriangularSolve"].workspace(*specs, lower=True, adjoint=False)
