"""Systems of equations: matrices that are singular or no numbers, batches, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(2, 3, 3)), RNG.normal(size=(2, 3, 2))
GRAM = A @ A.swapaxes(1, 2) + np.eye(3)
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
WITH_NAN = np.stack([np.eye(2), [[np.nan, 1.0], [1.0, 1.0]]])


def test_of_positive_definite_matrices() -> None:
    factor = ops.cholesky(GRAM)
    np.testing.assert_allclose(ops.cholesky_solve(factor, B).numpy(), np.linalg.solve(GRAM, B))
    np.testing.assert_allclose(ops.logdet(GRAM).numpy(), np.linalg.slogdet(GRAM)[1])


@cases("shape", [(5, 2), (2, 5), (3, 3)])
@cases("regularizer", [0.0, 0.5])
def test_least_squares(shape: tuple[int, int], regularizer: float) -> None:
    a, b = RNG.normal(size=shape), RNG.normal(size=(shape[0], 2))
    found = ops.lstsq(a, b, regularizer).numpy()
    # As more equations: the root of the regularizer, times the unknowns, is 0.
    below = np.sqrt(regularizer) * np.eye(shape[1])
    longer = np.vstack([a, below]), np.vstack([b, np.zeros((shape[1], 2))])
    np.testing.assert_allclose(found, np.linalg.lstsq(*longer, rcond=None)[0], rtol=1e-8, atol=1e-9)


def test_triangular_systems_broadcast() -> None:
    matrix, rhs = RNG.normal(size=(5, 1, 3, 3)), RNG.normal(size=(4, 3, 2))
    found = ops.triangular_solve(matrix, rhs, lower=False).numpy()
    np.testing.assert_allclose(
        np.triu(matrix) @ found, np.broadcast_to(rhs, (5, 4, 3, 2)), atol=1e-9
    )
    assert ops.triangular_solve([[0.0, 9.0], [1.0, 2.0]], [[3.0], [1.0]]).numpy().tolist() == [
        [np.inf],
        [-np.inf],
    ]


@pytest.mark.parametrize("recorded", [False, True])
def test_singular_matrices(recorded: bool) -> None:
    def check(function: Callable[[Any], Any], text: str) -> None:
        with pytest.raises(InvalidArgumentError, match=text):
            (mr.function(function) if recorded else function)(ops.constant(SINGULAR))

    check(ops.inv, r"Input is not invertible. \[Op:MatrixInverse\]")
    check(lambda x: ops.solve(x, x), r"Input matrix is not invertible. \[Op:MatrixSolve\]")


def test_determinants_of_singular_matrices() -> None:
    assert ops.det(SINGULAR).numpy() == 0
    assert [each.numpy() for each in ops.slogdet(SINGULAR)] == [0, -np.inf]
    x = ops.constant(SINGULAR)
    with mr.GradientTape() as tape:
        tape.watch(x)
        value = ops.det(x)
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        tape.gradient(value, x)


def test_a_nan_is_passed_on_and_leaves_others_alone() -> None:
    """LAPACK would pass over it."""
    for found in (ops.inv(WITH_NAN), ops.solve(WITH_NAN, np.ones((2, 2, 1)))):
        assert np.isnan(found.numpy()).reshape(2, -1).all(axis=1).tolist() == [False, True]
        assert np.isfinite(found.numpy()[0]).all()
    np.testing.assert_array_equal(ops.det(WITH_NAN).numpy(), [1.0, np.nan])
    for each, first in zip(ops.slogdet(WITH_NAN), (1.0, 0.0), strict=True):
        np.testing.assert_array_equal(each.numpy(), [first, np.nan])


def test_matrices_that_are_not_positive_definite() -> None:
    nan = np.nan
    found = ops.cholesky(np.stack([np.eye(2), -np.eye(2), 4 * np.eye(2)])).numpy()
    expected = [[[1, 0], [0, 1]], [[nan, 0], [nan, nan]], [[2, 0], [0, 2]]]
    np.testing.assert_array_equal(found, expected)


@cases(
    ("call", "text"),
    [
        (lambda: ops.inv(B), r"must be square, got \[3,2\] \[Op:MatrixInverse\]"),
        (lambda: ops.det([1.0]), r"must have rank >= 2, got \[1\]"),
        (lambda: ops.solve(A, B[0]), "must have the same outer dimensions"),
        (lambda: ops.solve(A, B[:, :2]), "matrix and rhs are incompatible"),
        (lambda: ops.triangular_solve(A, B[0, 0]), "must have rank >= 2"),
        (lambda: ops.triangular_solve(A, RNG.normal(size=(3, 3, 2))), "Incompatible shapes"),
        (lambda: ops.lstsq(A, [1.0]), "`matrix` and `rhs` must have rank >= 2"),
        (lambda: ops.inv([[1, 2], [3, 4]]), "Value for attr 'T' of int32 is not in the list"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        call()


def test_other_ways_to_least_squares_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"Use matmul\(linalg.pinv\(matrix\), rhs\)"):
        ops.lstsq(A, B, fast=False)


@cases(
    "function",
    [
        ops.inv,
        ops.det,
        ops.logdet,
        ops.cholesky,
        lambda x: ops.solve(x, x),
        lambda x: ops.triangular_solve(x, x),
        lambda x: ops.svd(x)[0],
        lambda x: ops.qr(x)[1],
        lambda x: ops.eigh(x)[0],
    ],
)
def test_simulated_gpus_compute_it(simulate: Any, function: Callable[[Any], Any]) -> None:
    """What they make is memory of theirs, and so are gradients; the bits are the CPU's."""
    simulate(2)
    mr.config.set_soft_device_placement(False)
    memory, found = mr.config.experimental.get_memory_info, {}
    for where in ("CPU:0", "GPU:1"):
        with mr.device(where), mr.GradientTape() as tape:
            x = ops.constant(GRAM)
            tape.watch(x)
            before = memory(where)["current"]
            y = function(x)
            assert memory(where)["current"] - before >= y.numpy().nbytes
        pair = (y, tape.gradient(y, x))
        assert {each.device.rpartition("device:")[2] for each in pair} == {where}
        found[where] = [each.numpy() for each in pair]
    np.testing.assert_equal(found["GPU:1"], found["CPU:0"])
