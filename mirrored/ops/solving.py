"""Systems of linear equations: inverses, determinants, Cholesky's factors and what they solve.

NumPy's LAPACK computes them. The gradients are products with solutions of the same
systems; each rule is TensorFlow's.
"""

from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, as_tensors
from mirrored.ops.diagonals import band_part, diag_part, set_diag
from mirrored.ops.host_matrices import as_columns, define, nan_where, transposed
from mirrored.ops.linalg import matmul
from mirrored.ops.op import Grads, OpCall
from mirrored.ops.powers import LOG
from mirrored.ops.products import matrix_transpose
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.shaping import BROADCAST_TO
from mirrored.ops.spec import Shape, broadcast_shapes, shape_text
from mirrored.ops.tensor import Tensor

_SINGULAR = "Input matrix is not invertible."


# ---------------------------------------------------------------------------- kernels


def _of_solution(matrix: Shape, rhs: Shape, **_: Any) -> Shape:
    if matrix[-1] != rhs[-2]:
        raise InvalidArgumentError(
            f"Input matrix and rhs are incompatible. Received: {shape_text(matrix)} and "
            f"{shape_text(rhs)}"
        )
    return rhs


def _has_nan(x: Any) -> Any:
    return np.isnan(x).any(axis=(-1, -2))


def _inverse(x: Any, *, adjoint: bool) -> Any:
    return nan_where(_has_nan(x), np.linalg.inv, transposed(x) if adjoint else x)


def _determinant(x: Any) -> Any:
    return nan_where(_has_nan(x), np.linalg.det, x)


def _log_determinant(x: Any) -> Any:
    return nan_where(_has_nan(x), lambda x: np.stack(np.linalg.slogdet(x), axis=-1), x)


def _solution(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    turned = transposed(matrix) if adjoint else matrix
    return nan_where(_has_nan(matrix), np.linalg.solve, turned, rhs)


def _triangular_solution(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    """Return it row by row, each from those before: LAPACK's own function NumPy has not."""
    matrix = transposed(matrix) if adjoint else matrix
    rows, result = range(matrix.shape[-1]), np.empty_like(rhs)
    forward = lower != adjoint
    for i in rows if forward else reversed(rows):
        known = slice(i) if forward else slice(i + 1, None)
        before = matrix[:, i : i + 1, known] @ result[:, known]
        result[:, i] = (rhs[:, i] - before[:, 0]) / matrix[:, i, i, None]
    return result


def _factor(x: Any) -> Any:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:  # It says of none which one it is.
        if len(x) == 1:
            return np.tril(np.full_like(x, np.nan))
        result = np.empty_like(x)
        for i in range(len(x)):
            result[i : i + 1] = _factor(x[i : i + 1])
        return result


# ---------------------------------------------------------------------------- gradients


def _grad_inverse(call: OpCall, g: Tensor) -> Grads:
    y, adjoint = call.output, call.attrs["adjoint"]
    inner = matmul(g, y, transpose_a=adjoint, transpose_b=not adjoint)
    return [-matmul(y, inner, transpose_a=not adjoint)]


def _grad_determinant(call: OpCall, g: Tensor) -> Grads:
    return [as_columns(g * call.output) * inv(call.inputs[0], adjoint=True)]


def _grad_log_determinant(call: OpCall, g: Tensor) -> Grads:
    return [as_columns(g[..., 1]) * inv(call.inputs[0], adjoint=True)]


def _grad_by_matrix(call: OpCall, by_rhs: Tensor) -> Tensor:
    x = call.output
    pair = (x, by_rhs) if call.attrs["adjoint"] else (by_rhs, x)
    return -matmul(*pair, transpose_b=True)


def _grad_solution(call: OpCall, g: Tensor) -> Grads:
    by_rhs = SOLVE(call.inputs[0], g, adjoint=not call.attrs["adjoint"])
    return [_grad_by_matrix(call, by_rhs), by_rhs]


def _grad_triangular(call: OpCall, g: Tensor) -> Grads:
    lower, adjoint = call.attrs["lower"], call.attrs["adjoint"]
    by_rhs = TRIANGULAR_SOLVE(call.inputs[0], g, lower=lower, adjoint=not adjoint)
    by_matrix = _grad_by_matrix(call, by_rhs)
    return [band_part(by_matrix, *((-1, 0) if lower else (0, -1))), by_rhs]


def _grad_cholesky(call: OpCall, g: Tensor) -> Grads:
    factor = call.output
    middle = matmul(factor, g, transpose_a=True)
    middle = band_part(set_diag(middle, 0.5 * diag_part(middle)), -1, 0)
    # Times the inverse of the factor on the right, and that of its transpose on the left.
    right = matrix_transpose(
        TRIANGULAR_SOLVE(factor, matrix_transpose(middle), lower=True, adjoint=True)
    )
    by_x = TRIANGULAR_SOLVE(factor, right, lower=True, adjoint=True)
    return [(by_x + matrix_transpose(by_x)) * 0.5]


INVERSE = define(
    "MatrixInverse", lambda x, **_: x, _inverse, _grad_inverse, "Input is not invertible."
)
DETERMINANT = define("MatrixDeterminant", lambda x: (), _determinant, _grad_determinant)
# The sign, and the logarithm of the absolute value.
LOG_DETERMINANT = define(
    "LogMatrixDeterminant", lambda x: (2,), _log_determinant, _grad_log_determinant
)
SOLVE = define("MatrixSolve", _of_solution, _solution, _grad_solution, _SINGULAR)
TRIANGULAR_SOLVE = define(
    "MatrixTriangularSolve", _of_solution, _triangular_solution, _grad_triangular
)
CHOLESKY = define("Cholesky", lambda x: x, _factor, _grad_cholesky)


# ---------------------------------------------------------------------------- public functions


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverses of matrices.

    Args:
        input: A tensor of shape (..., n, n), of floats.
        adjoint: Whether to transpose the matrices first.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: A matrix is not invertible, or not square.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return INVERSE(input, adjoint=bool(adjoint))


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the determinants of matrices.

    Args:
        input: A tensor of shape (..., n, n), of floats.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The matrices are not square; or, where the gradient is computed, one
            is not invertible.

    Example:
        >>> import mirrored as mr
        >>> float(mr.linalg.det([[2.0, 0.0], [0.0, 4.0]]))
        8.0
    """
    return DETERMINANT(input)


def slogdet(input: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the signs of determinants, and the logarithms of their absolute values.

    Args:
        input: A tensor of shape (..., n, n), of floats.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The matrices are not square; or, where the gradient is computed, one
            is not invertible.

    Example:
        >>> import mirrored as mr
        >>> sign, logarithm = mr.linalg.slogdet([[-1.0, 0.0], [0.0, 1.0]])
        >>> float(sign), float(logarithm)
        (-1.0, 0.0)
    """
    both = LOG_DETERMINANT(input)
    return both[..., 0], both[..., 1]


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Return the logarithms of the determinants of symmetric positive definite matrices.

    Args:
        matrix: A tensor of shape (..., n, n), of floats.
        name: Accepted for compatibility.

    Returns:
        A tensor of shape (...), NaN where a matrix is not positive definite.

    Raises:
        InvalidArgumentError: The matrices are not square.

    Example:
        >>> import mirrored as mr
        >>> float(mr.linalg.logdet([[1.0, 0.0], [0.0, 1.0]]))
        0.0
    """
    return 2.0 * reduce_sum(LOG(diag_part(CHOLESKY(matrix))), axis=-1)


def solve(
    matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Return the solutions of systems of linear equations.

    Args:
        matrix: A tensor of shape (..., n, n), of floats.
        rhs: The right sides, a tensor of shape (..., n, k).
        adjoint: Whether to transpose the matrices first.
        name: Accepted for compatibility.

    Returns:
        What `matrix` is multiplied by to give `rhs`, of the shape of `rhs`.

    Raises:
        InvalidArgumentError: A matrix is not invertible, or shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy()
        array([[1. ],
               [0.5]], dtype=float32)
    """
    return SOLVE(matrix, rhs, adjoint=bool(adjoint))


def triangular_solve(
    matrix: TensorLike,
    rhs: TensorLike,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the solutions of systems whose matrices are triangular.

    Args:
        matrix: A tensor of shape (..., n, n), of floats; the other triangle is not looked at. By a
            0 on the diagonal is divided, which gives an infinity or NaN.
        rhs: The right sides, a tensor of shape (..., n, k); leading axes broadcast.
        lower: Whether it is the lower triangle, with the diagonal, or the upper one.
        adjoint: Whether to transpose the matrices first.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.triangular_solve([[2.0, 9.0], [2.0, 4.0]], [[2.0], [4.0]]).numpy()
        array([[1. ],
               [0.5]], dtype=float32)
    """
    matrix, rhs = _of_one_batch(*as_tensors((matrix, rhs)))
    return TRIANGULAR_SOLVE(matrix, rhs, lower=bool(lower), adjoint=bool(adjoint))


def _of_one_batch(matrix: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors of matrices with the leading axes that theirs broadcast to."""
    if matrix.shape[:-2] == rhs.shape[:-2] or min(matrix.ndim, rhs.ndim) < 2:
        return matrix, rhs
    batch = broadcast_shapes(TRIANGULAR_SOLVE.name, matrix.shape[:-2], rhs.shape[:-2])
    first, second = (BROADCAST_TO(x, shape=(*batch, *x.shape[-2:])) for x in (matrix, rhs))
    return first, second


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the lower triangular factors of matrices.

    A factor times its transpose is the matrix, of which the lower triangle alone is looked at.

    Args:
        input: A tensor of shape (..., n, n), of floats, symmetric and positive definite.
        name: Accepted for compatibility.

    Returns:
        A tensor of the same shape, NaN in the lower triangle where a matrix is not positive
        definite.

    Raises:
        InvalidArgumentError: The matrices are not square.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).numpy()
        array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    return CHOLESKY(input)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Return the solutions of systems whose matrices have these factors of Cholesky's.

    Args:
        chol: What `cholesky` returned, of shape (..., n, n).
        rhs: The right sides, a tensor of shape (..., n, k); leading axes broadcast.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.cholesky_solve([[2.0, 0.0], [0.0, 1.0]], [[4.0], [1.0]]).numpy()
        array([[1.],
               [1.]], dtype=float32)
    """
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def lstsq(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: TensorLike = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Return the solutions of systems in the sense of least squares.

    Of more equations than unknowns that with the least squared error, and of fewer the shortest.

    Args:
        matrix: A tensor of shape (..., m, n), of floats and of full rank.
        rhs: The right sides, a tensor of shape (..., m, k).
        l2_regularizer: What is added times the squared length of the solution.
        fast: By the normal equations, which is all there is here.
        name: Accepted for compatibility.

    Raises:
        NotImplementedError: `fast` is false.
        InvalidArgumentError: Shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.lstsq([[1.0], [1.0]], [[1.0], [3.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    if not fast:
        raise NotImplementedError(
            "`lstsq` solves the normal equations here. Received: fast=False. Use "
            "matmul(linalg.pinv(matrix), rhs)."
        )
    a, b = as_tensors((matrix, rhs))
    if min(a.ndim, b.ndim) < 2:
        raise InvalidArgumentError(
            f"`matrix` and `rhs` must have rank >= 2. Received: {shape_text(a.shape)} and "
            f"{shape_text(b.shape)}"
        )
    tall = a.shape[-2] >= a.shape[-1]
    gram = matmul(a, a, transpose_a=tall, transpose_b=not tall)
    gram = set_diag(gram, diag_part(gram) + adopt(l2_regularizer, a.dtype))
    factor = CHOLESKY(gram)
    if tall:
        return cholesky_solve(factor, matmul(a, b, transpose_a=True))
    return matmul(a, cholesky_solve(factor, b), transpose_a=True)


explain_functions(__name__)
