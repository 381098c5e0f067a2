"""The rows of the decompositions of matrices."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from op_row import Array, Case, Row

MATRICES = (((3, 3),), ((2, 2, 2),))
MANY = (((20_000, 3, 3),),)
NONE = (((0, 2, 2),), ((2, 0, 0),))
SYSTEMS, MANY_SYSTEMS, NO_SYSTEMS = (
    tuple((*each, (*each[0][:-1], 2)) for each in shapes) for shapes in (MATRICES, MANY, NONE)
)


def turned(x: Array, adjoint: bool = True) -> Array:
    """Return matrices with rows and columns exchanged."""
    return x.swapaxes(-1, -2) if adjoint else x


def symmetric(x: Array) -> Array:
    """Return the matrices whose lower triangles these are."""
    return np.tril(x) + turned(np.tril(x, -1))


def of_triangle(matrix: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    """Return the solutions of triangular systems by way of inverses."""
    part = np.tril(matrix) if lower else np.triu(matrix)
    return np.asarray(np.linalg.inv(turned(part, adjoint)) @ rhs)


def factor(x: Array) -> Array:
    """Return Cholesky's factors by way of square roots of matrices."""
    values, vectors = np.linalg.eigh(symmetric(x))
    r = np.linalg.qr(turned(vectors * np.sqrt(values)[..., None, :]))[1]
    return turned(r * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None])


def eigen(x: Array, compute_v: bool) -> Array:
    """Return eigenvalues, and vectors beside them."""
    if not compute_v:
        return np.sort(np.linalg.eigvals(symmetric(x)).real)
    values, vectors = np.linalg.eigh(symmetric(x))
    return np.concatenate([values[..., None], vectors], axis=-1)


def singular(x: Array, full_matrices: bool, compute_uv: bool) -> Array:
    """Return singular values, or with vectors one after the other."""
    if not compute_uv:
        gram = x @ turned(x) if x.shape[-2] < x.shape[-1] else turned(x) @ x
        return np.sqrt(np.linalg.eigvalsh(gram))[..., ::-1]
    u, s, v = np.linalg.svd(x, full_matrices)
    return beside(x, u, s, turned(v))


def beside(x: Array, *parts: Array) -> Array:
    """Return what each matrix gave in one row."""
    rows = [part.reshape(*x.shape[:-2], math.prod(part.shape[x.ndim - 2 :])) for part in parts]
    return np.concatenate(rows, axis=-1)


def signed_qr(case: Case, y: Array) -> Array:
    """Return orthogonal factors of which the other ones have no negative diagonals."""
    (m, n), full = case.shapes[0][-2:], case.attrs["full_matrices"]
    inner = m if full else min(m, n)
    q, r = np.split(y, [m * inner], axis=-1)
    q, r = q.reshape(*y.shape[:-1], m, inner), r.reshape(*y.shape[:-1], inner, n)
    signs = np.ones(q.shape[:-2] + q.shape[-1:], y.dtype)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    signs[..., : diagonal.shape[-1]] = np.copysign(1, diagonal)
    return beside(np.empty((*y.shape[:-1], 1, 1)), q * signs[..., None, :], r * signs[..., None])


def signs_of(vectors: Array) -> Array:
    """Return the signs of the largest elements of columns."""
    places = np.abs(vectors).argmax(axis=-2)[..., None, :]
    return np.copysign(np.ones_like(vectors[..., :1, :]), np.take_along_axis(vectors, places, -2))


def signed_eigen(case: Case, y: Array) -> Array:
    """Return eigenvectors whose largest elements are positive."""
    if not (case.attrs["compute_v"] and y.size):
        return y
    return np.concatenate([y[..., :1], y[..., 1:] * signs_of(y[..., 1:])], axis=-1)


def signed_svd(case: Case, y: Array) -> Array:
    """Return singular vectors, those on the left with positive largest elements."""
    (m, n), full = case.shapes[0][-2:], case.attrs["full_matrices"]
    if not (case.attrs["compute_uv"] and y.size):
        return y
    least = min(m, n)
    of_u, of_v = (m, n) if full else (least, least)
    u, s, v = np.split(y, [m * of_u, m * of_u + least], axis=-1)
    u, v = u.reshape(*y.shape[:-1], m, of_u), v.reshape(*y.shape[:-1], n, of_v)
    signs = signs_of(u[..., :least])
    u[..., :least] *= signs
    v[..., :least] *= signs
    return beside(np.empty((*y.shape[:-1], 1, 1)), u, s, v)


def on_matrices(
    reference: Callable[..., Any], *attrs: Mapping[str, Any], systems: bool = False, **options: Any
) -> Row:
    """Return the row of a decomposition, or of what solves systems; a case for each attributes."""
    small, large, empty = (
        tuple(Case(each, one) for one in attrs or ({},) for each in shapes)
        for shapes in ((SYSTEMS, MANY_SYSTEMS, NO_SYSTEMS) if systems else (MATRICES, MANY, NONE))
    )
    # Batches with the first attributes alone: with others they are made alike.
    few = tuple(case for case in small if case.attrs is small[0].attrs or case.shapes[0] == (3, 3))
    return Row(reference, few, large[:1], empty, **{"kinds": ("dominant", "any"), **options})


def either(name: str, **attrs: Any) -> tuple[Mapping[str, Any], ...]:
    """Return attributes of which one is false and true."""
    return tuple({**attrs, name: each} for each in (False, True))


MATRIX_ROWS: dict[str, Row] = {
    # The gradient is that of a symmetric matrix, of which both triangles change.
    "Cholesky": on_matrices(factor, along=lambda direction, _: symmetric(direction)),
    "LogMatrixDeterminant": on_matrices(
        lambda x: np.stack(
            [np.sign(np.linalg.det(x)), np.log(np.abs(np.linalg.eigvals(x))).sum(-1)], -1
        )
    ),
    "MatrixDeterminant": on_matrices(lambda x: np.prod(np.linalg.eigvals(x), axis=-1).real),
    "MatrixInverse": on_matrices(
        lambda x, adjoint: np.linalg.solve(turned(x, adjoint), np.eye(x.shape[-1]) + 0 * x),
        *either("adjoint"),
    ),
    "MatrixSolve": on_matrices(
        lambda matrix, rhs, adjoint: np.linalg.inv(turned(matrix, adjoint)) @ rhs,
        *either("adjoint"),
        systems=True,
    ),
    "MatrixTriangularSolve": on_matrices(
        of_triangle,
        *either("adjoint", lower=True),
        *either("adjoint", lower=False),
        systems=True,
    ),
    "Qr": on_matrices(
        lambda x, full_matrices: beside(x, *np.linalg.qr(x)),
        *either("full_matrices"),
        kinds=("any",),
        signed=signed_qr,
    ),
    "SelfAdjointEigV2": on_matrices(eigen, *either("compute_v"), signed=signed_eigen),
    "Svd": on_matrices(
        singular,
        *either("full_matrices", compute_uv=True),
        {"compute_uv": False, "full_matrices": False},
        kinds=("any",),
        signed=signed_svd,
    ),
}
