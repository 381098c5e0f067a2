"""Products and transposes of matrices by their other names, beside NumPy."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import ops
from mirrored.errors import InvalidArgumentError

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 3, 5))


@cases("axes", [[[1, 2], [1, 0]], ((-2, -1), (-2, 0)), [2, 0], [[2], [0]], 1, 0])
def test_tensordot(axes: Any) -> None:
    found = ops.tensordot(A, B, axes).numpy()
    np.testing.assert_allclose(found, np.tensordot(A, B, axes), rtol=1e-12, atol=1e-14)


@cases(
    ("axes", "kind", "text"),
    [
        (-1, ValueError, "`axes` must be at least 0"),
        (4, ValueError, "must not be larger than the number of dimensions"),
        ([[0]], ValueError, "must be an integer or have length 2"),
        ([[0, 1], [0]], ValueError, "Different number of contraction axes"),
        ([[3], [0]], IndexError, "names an axis that a tensor of shape"),
        ([[0, -3], [0, 1]], InvalidArgumentError, "names an axis twice"),
        ([[0], [0]], InvalidArgumentError, "Matrix size-incompatible"),
    ],
)
def test_axes_that_tensordot_refuses(axes: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        ops.tensordot(A, B, axes)


def test_matrices_and_vectors() -> None:
    x = RNG.normal(size=4)
    np.testing.assert_allclose(ops.matvec(A, x).numpy(), A @ x, rtol=1e-12)
    for turned in ({"transpose_a": True}, {"adjoint_a": True}):
        found = ops.matvec(A.swapaxes(1, 2), np.stack([x, -x]), **turned).numpy()
        np.testing.assert_allclose(found, np.stack([A[0] @ x, A[1] @ -x]), rtol=1e-12)


def test_adjoint_matrices() -> None:
    found = ops.matmul(A.swapaxes(1, 2), A.swapaxes(1, 2), adjoint_a=True).numpy()
    np.testing.assert_allclose(found, A @ A.swapaxes(1, 2), rtol=1e-12)
    np.testing.assert_array_equal(ops.matrix_transpose(A).numpy(), A.swapaxes(1, 2))
    np.testing.assert_array_equal(ops.adjoint(A).numpy(), A.swapaxes(1, 2))
    with pytest.raises(ValueError, match=r"Only one of `transpose_b` and `adjoint_b` can be True"):
        ops.matmul(A, A, transpose_b=True, adjoint_b=True)
    with pytest.raises(ValueError, match="`output_type` must be the dtype of the matrices"):
        ops.matmul(A, A, transpose_b=True, output_type="float32")
    with pytest.raises(ValueError, match=r"should be a \(batch\) matrix with rank >= 2"):
        ops.matrix_transpose([1.0])


def test_cross_products() -> None:
    a, b = RNG.normal(size=(2, 4, 3))
    np.testing.assert_allclose(ops.cross(a, b).numpy(), np.cross(a, b), rtol=1e-14)
    with pytest.raises(InvalidArgumentError, match="only defined for 3-element vectors"):
        ops.cross([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="must be of same shape"):
        ops.cross(a, b[0])
