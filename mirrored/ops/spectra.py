"""Eigenvalues and singular values of matrices, and orthogonal factors.

NumPy's LAPACK computes them. An op has one result: what a decomposition consists of
lies in it side by side, and is cut out. The gradients are TensorFlow's.
"""

import math
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.ops.comparison import GREATER
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.diagonals import band_part, diag, diag_part, set_diag
from mirrored.ops.host_matrices import define, nan_where, transposed
from mirrored.ops.linalg import matmul
from mirrored.ops.op import Grads, OpCall
from mirrored.ops.powers import RECIPROCAL, SQUARE
from mirrored.ops.products import matrix_transpose
from mirrored.ops.reduction import reduce_max, reduce_sum
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import CAST, RESHAPE, concat, expand_dims
from mirrored.ops.solving import TRIANGULAR_SOLVE
from mirrored.ops.spec import FLOATS, INTEGERS, Shape, float32, int32
from mirrored.ops.tensor import Tensor

# ---------------------------------------------------------------------------- eigenvalues


def _eigen(x: Any, *, compute_v: bool) -> Any:
    if np.isnan(np.tril(x)).any():
        raise np.linalg.LinAlgError  # LAPACK would give numbers.
    if not compute_v:
        return np.linalg.eigvalsh(x)
    values, vectors = np.linalg.eigh(x)
    return np.concatenate([values[..., None], vectors], axis=-1)


def _safe_reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x, and no infinity where values are equal, as TensorFlow has it."""
    return x * RECIPROCAL(x * x + 1e-20)


def _gaps(values: Tensor) -> Tensor:
    """Return 1 / (value j - value i), and 0 on the diagonal."""
    apart = expand_dims(values, -2) - expand_dims(values, -1)
    return set_diag(_safe_reciprocal(apart), ZEROS_LIKE(values))


def _grad_eigen(call: OpCall, g: Tensor) -> Grads:
    if call.attrs["compute_v"]:
        values, v = call.output[..., 0], call.output[..., 1:]
        turned = matmul(v, g[..., 1:], transpose_a=True)
        middle = diag(g[..., 0]) + _gaps(values) * turned
    else:
        v, middle = eigh(call.inputs[0])[1], diag(g)
    by_x = matmul(v, matmul(middle, v, transpose_b=True))
    # The lower triangle alone was looked at.
    by_x = band_part(by_x + matrix_transpose(by_x), -1, 0)
    return [set_diag(by_x, 0.5 * diag_part(by_x))]


EIGEN = define(
    "SelfAdjointEigV2",
    lambda x, *, compute_v: (x[0], x[0] + 1) if compute_v else x[:1],
    _eigen,
    _grad_eigen,
    "Self-adjoint eigen decomposition was not successful. The input might not be valid.",
)


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and the eigenvectors of symmetric matrices.

    Args:
        tensor: A tensor of shape (..., n, n), of floats, of which the lower triangle alone is
            looked at.
        name: Accepted for compatibility.

    Returns:
        The eigenvalues, smallest first, of shape (..., n), and the eigenvectors, columns of
        matrices of shape (..., n, n), whose signs are LAPACK's.

    Raises:
        InvalidArgumentError: The matrices are not square, or LAPACK finds no eigenvalues.

    Example:
        >>> import mirrored as mr
        >>> values, vectors = mr.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])
        >>> values.numpy()
        array([1., 2.], dtype=float32)
    """
    both = EIGEN(tensor, compute_v=True)
    return both[..., 0], both[..., 1:]


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Return the eigenvalues of symmetric matrices.

    Arguments and errors are those of `eigh`.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy()
        array([1., 2.], dtype=float32)
    """
    return EIGEN(tensor, compute_v=False)


# ---------------------------------------------------------------------------- singular values


def _parts_of_svd(x: Shape, full_matrices: bool) -> list[Shape]:
    """Return the shapes of the left vectors, the values and the right vectors."""
    m, n = x[-2:]
    p = min(m, n)
    return [(m, m if full_matrices else p), (p,), (n, n if full_matrices else p)]


def _of_svd(x: Shape, *, full_matrices: bool, compute_uv: bool) -> Shape:
    if not compute_uv:
        return (min(x),)
    return (sum(math.prod(part) for part in _parts_of_svd(x, full_matrices)),)


def _packed(*parts: Any) -> Any:
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=-1)


def _unpacked(x: Tensor, shapes: list[Shape]) -> list[Tensor]:
    """Return what lies side by side in the last axis."""
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(RESHAPE(x[..., begin:end], shape=(*x.shape[:-1], *shape)))
        begin = end
    return parts


def _svd(x: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    def compute(x: Any) -> Any:
        if not compute_uv:
            return np.linalg.svd(x, compute_uv=False)
        u, s, v = np.linalg.svd(x, full_matrices=full_matrices)
        return _packed(u, s, transposed(v))

    return nan_where(~np.isfinite(x).all(axis=(-1, -2)), compute, x)


def _grad_svd(call: OpCall, g: Tensor) -> Grads:
    x, full = call.inputs[0], call.attrs["full_matrices"]
    if not call.attrs["compute_uv"]:
        _, u, v = svd(x)
        return [matmul(u, matmul(diag(g), v, transpose_b=True))]
    shapes = _parts_of_svd(x.shape, full)
    u, s, v = _unpacked(call.output, shapes)
    by_u, by_s, by_v = _unpacked(g, shapes)
    m, n = x.shape[-2:]
    if full and abs(m - n) > 1:
        raise NotImplementedError(
            "For the gradient of `svd` with full_matrices=True, the numbers of rows and columns "
            f"must differ by 1 at most. Received: {m} rows and {n} columns. Use "
            "full_matrices=False."
        )
    if m > n:
        return [matrix_transpose(_grad_wide(v, s, u, by_v, by_s, by_u))]
    return [_grad_wide(u, s, v, by_u, by_s, by_v)]


def _grad_wide(u: Tensor, s: Tensor, v: Tensor, by_u: Tensor, by_s: Tensor, by_v: Tensor) -> Tensor:
    """Return the gradient by a matrix that has at least as many columns as rows."""
    m, n = u.shape[-1], v.shape[-1]
    first, by_first = v[..., :m], by_v[..., :m]
    values, gaps = diag(s), _gaps(SQUARE(s))
    of_u = gaps * matmul(u, by_u, transpose_a=True)
    of_v = gaps * matmul(first, by_first, transpose_a=True)
    middle = diag(by_s) + matmul(of_u + matrix_transpose(of_u), values)
    middle = middle + matmul(values, of_v + matrix_transpose(of_v))
    by_x = matmul(u, matmul(middle, first, transpose_b=True))
    if u.shape[-2] == v.shape[-2]:
        return by_x
    turned = matrix_transpose(by_first)
    rest = turned - matmul(matmul(turned, first), first, transpose_b=True)
    if n > m:
        last, by_last = v[..., m:], by_v[..., m:]
        across = matmul(first, by_last, transpose_a=True)
        rest = rest - matmul(across, last, transpose_b=True)
    return by_x + matmul(matmul(u, diag(_safe_reciprocal(s))), rest)


SVD = define("Svd", _of_svd, _svd, _grad_svd, square=False)


def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: bool = True,
    name: str | None = None,
) -> Any:
    """Return the singular values of matrices, with their vectors.

    A matrix is u diag(s) v^T. The signs of vectors are LAPACK's.

    Args:
        tensor: A tensor of shape (..., m, n), of floats.
        full_matrices: Whether there are as many vectors as rows, and as columns.
        compute_uv: Whether vectors are computed.
        name: Accepted for compatibility.

    Returns:
        The values `s`, largest first, of shape (..., min(m, n)); with vectors `s`, `u` of shape
        (..., m, min(m, n)) and `v` of shape (..., n, min(m, n)), columns of matrices.

    Raises:
        InvalidArgumentError: There are no matrices.
        NotImplementedError: The gradient is asked for with `full_matrices`, and m and n differ by
            more than 1.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).numpy()
        array([4., 3.], dtype=float32)
    """
    x, full = adopt(tensor, None), bool(full_matrices)
    packed = SVD(x, full_matrices=full, compute_uv=bool(compute_uv))
    if not compute_uv:
        return packed
    u, s, v = _unpacked(packed, _parts_of_svd(x.shape, full))
    return s, u, v


# ---------------------------------------------------------------------------- orthogonal factors


def _parts_of_qr(x: Shape, full_matrices: bool) -> list[Shape]:
    m, n = x[-2:]
    inner = m if full_matrices else min(m, n)
    return [(m, inner), (inner, n)]


def _of_qr(x: Shape, *, full_matrices: bool) -> Shape:
    return (sum(math.prod(part) for part in _parts_of_qr(x, full_matrices)),)


def _qr(x: Any, *, full_matrices: bool) -> Any:
    return _packed(*np.linalg.qr(x, mode="complete" if full_matrices else "reduced"))


def _grad_qr(call: OpCall, g: Tensor) -> Grads:
    x = call.inputs[0]
    shapes = _parts_of_qr(x.shape, call.attrs["full_matrices"])
    q, r = _unpacked(call.output, shapes)
    by_q, by_r = _unpacked(g, shapes)
    rows, columns = r.shape[-2:]
    if rows > columns:
        raise NotImplementedError(
            "For the gradient of `qr` with full_matrices=True, a matrix must not have more rows "
            f"than columns. Received: {rows} rows and {columns} columns. Use full_matrices=False."
        )
    m = q.shape[-2]
    if m >= columns:
        return [_grad_tall(q, r, by_q, by_r)]
    # The first columns are a square matrix, of whose factors the others follow.
    rest = x[..., m:]
    by_q = by_q + matmul(rest, by_r[..., m:], transpose_b=True)
    by_first = _grad_tall(q, r[..., :m], by_q, by_r[..., :m])
    return [concat([by_first, matmul(q, by_r[..., m:])], -1)]


def _grad_tall(q: Tensor, r: Tensor, by_q: Tensor, by_r: Tensor) -> Tensor:
    """Return the gradient by a matrix that has at least as many rows as columns."""

    def over_r(x: Tensor) -> Tensor:
        """Return x times the transposed inverse of r."""
        turned = TRIANGULAR_SOLVE(r, matrix_transpose(x), lower=False, adjoint=False)
        return matrix_transpose(turned)

    of_q, of_r = matmul(q, by_q, transpose_a=True), matmul(r, by_r, transpose_b=True)
    both = (of_q - matrix_transpose(of_q)) + (of_r - matrix_transpose(of_r))
    return matmul(q, by_r + over_r(band_part(both, -1, 0))) + over_r(by_q - matmul(q, of_q))


QR = define("Qr", _of_qr, _qr, _grad_qr, square=False)


def qr(
    input: TensorLike, full_matrices: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return factors of matrices, an orthogonal and an upper triangular one.

    Args:
        input: A tensor of shape (..., m, n), of floats.
        full_matrices: Whether the orthogonal factor is square.
        name: Accepted for compatibility.

    Returns:
        Tensors of shape (..., m, p) and (..., p, n), where p is m, or the smaller of m and n.

    Raises:
        InvalidArgumentError: There are no matrices.
        NotImplementedError: The gradient is asked for with `full_matrices`, and there are more rows
            than columns.

    Example:
        >>> import mirrored as mr
        >>> q, r = mr.linalg.qr([[3.0, 0.0], [4.0, 0.0]])
        >>> mr.matmul(q, r).numpy().round(5)
        array([[3., 0.],
               [4., 0.]], dtype=float32)
    """
    x, full = adopt(input, None), bool(full_matrices)
    q, r = _unpacked(QR(x, full_matrices=full), _parts_of_qr(x.shape, full))
    return q, r


# ---------------------------------------------------------------------------- made of these


def pinv(
    a: TensorLike,
    rcond: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the pseudo-inverses of matrices, by their singular values.

    Args:
        a: A tensor of shape (..., m, n), of floats.
        rcond: Singular values up to this part of the largest count as 0; None: 10 times the larger
            of m and n times the distance from 1 to the next number.
        validate_args: Accepted for compatibility.
        name: Accepted for compatibility.

    Returns:
        A tensor of shape (..., n, m).

    Raises:
        InvalidArgumentError: There are no matrices.
        TypeError: They are not of floats.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy() + 0.0
        array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    x = _floats(adopt(a, None))
    s, u, v = svd(x)
    part = adopt(_tolerance(x, 10.0) if rcond is None else rcond, x.dtype)
    cutoff = part * reduce_max(s, axis=-1)
    kept = SELECT(GREATER(s, cutoff[..., None]), s, adopt(math.inf, x.dtype))
    return matmul(v / kept[..., None, :], u, transpose_b=True)


def matrix_rank(
    a: TensorLike,
    tol: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the ranks of matrices: how many singular values are not too small.

    Args:
        a: A tensor of shape (..., m, n), of floats.
        tol: Singular values up to this count as 0; None: the largest, times the larger of m and n,
            times the distance from 1 to the next number.
        validate_args: Accepted for compatibility.
        name: Accepted for compatibility.

    Returns:
        A tensor of int32, of shape (...).

    Raises:
        InvalidArgumentError: There are no matrices.
        TypeError: They are a tensor of integers.

    Example:
        >>> import mirrored as mr
        >>> int(mr.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
        1
    """
    x = adopt(a, None)
    if x.dtype in INTEGERS and not is_tensor(a):
        x = CAST(x, dtype=float32)
    s = svd(_floats(x), compute_uv=False)
    least = _tolerance(x, 1.0) * reduce_max(s, axis=-1, keepdims=True) if tol is None else tol
    return reduce_sum(CAST(GREATER(s, least), dtype=int32), axis=-1)


def _floats(x: Tensor) -> Tensor:
    """Return a tensor that is of floats."""
    if x.dtype not in FLOATS:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {x.dtype.name}).")
    return x


def _tolerance(x: Tensor, times: float) -> float:
    """Return a part of the largest singular value that rounding may give instead of 0."""
    return times * max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)


explain_functions(__name__)
