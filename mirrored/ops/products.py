"""Products of tensors that are matrix products of other shapes, and transposes of matrices."""

import math
from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, as_tensors
from mirrored.ops.elementwise import MUL, SUB
from mirrored.ops.linalg import matmul
from mirrored.ops.manipulation import roll
from mirrored.ops.shaping import RESHAPE, TRANSPOSE, expand_dims, squeeze
from mirrored.ops.spec import as_integers, shape_text
from mirrored.ops.tensor import Tensor


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the products of matrices with vectors; leading axes are batches and broadcast.

    Args:
        a: A tensor of shape (..., n, k), or (..., k, n) with `transpose_a`.
        b: A tensor of shape (..., k).
        transpose_a: Whether to transpose the matrices first; nothing is copied.
        adjoint_a: The same, since numbers are real.
        a_is_sparse: Accepted for compatibility.
        b_is_sparse: Accepted for compatibility.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The ranks, sizes or dtypes do not fit.
        ValueError: Both `transpose_a` and `adjoint_a` are true.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.matvec([[1, 2], [3, 4]], [1, 10]).numpy()
        array([21, 43], dtype=int32)
    """
    a, b = as_tensors((a, b))
    return squeeze(matmul(a, expand_dims(b, -1), transpose_a, adjoint_a=adjoint_a), -1)


def tensordot(
    a: TensorLike,
    b: TensorLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]],
    name: str | None = None,
) -> Tensor:
    """Return products of two tensors' elements, summed over pairs of axes.

    Args:
        a: A tensor.
        b: A tensor of the same dtype.
        axes: How many last axes of `a` go with the first ones of `b`; or two lists of axes, those
            of `a` and those of `b`, or two axes.
        name: Accepted for compatibility.

    Returns:
        A tensor of the axes of `a` that are left, and of those of `b`.

    Raises:
        ValueError: `axes` is negative or too large, or the lists differ in length.
        IndexError: There is no such axis.
        InvalidArgumentError: Sizes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.tensordot([[1, 2], [3, 4]], [1, 10], axes=1).numpy()
        array([21, 43], dtype=int32)
    """
    a, b = as_tensors((a, b))
    of_a, of_b = _pairs_of_axes(a, b, axes)
    free_a, free_b = (
        tuple(axis for axis in range(x.ndim) if axis not in lost)
        for x, lost in ((a, of_a), (b, of_b))
    )
    left = _matrix(a, free_a, of_a)
    product = matmul(left, _matrix(b, of_b, free_b))
    shape = (*(a.shape[axis] for axis in free_a), *(b.shape[axis] for axis in free_b))
    return RESHAPE(product, shape=shape)


def _pairs_of_axes(a: Tensor, b: Tensor, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of both tensors that are summed over."""
    count = as_integer(axes) if not getattr(axes, "shape", ()) else None
    if count is not None:
        if count < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        if count > a.ndim:
            raise ValueError(
                "`axes` must not be larger than the number of dimensions of tensor `a`. Received "
                f"{axes}, vs tensor dimensions {a.ndim}."
            )
        return _axes_of(a, range(a.ndim - count, a.ndim)), _axes_of(b, range(count))
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    of_a, of_b = (as_integers(side, "`axes`") for side in axes)
    if len(of_a) != len(of_b):
        raise ValueError(
            "Different number of contraction axes `a` and `b`, "
            f"{len(of_a)} != {len(of_b)}. Received: axes={axes}"
        )
    return _axes_of(a, of_a), _axes_of(b, of_b)


def _axes_of(x: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    """Return axes of a tensor, counted from the front."""
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(
                f"`axes` names an axis that a tensor of shape {shape_text(x.shape)} does not "
                f"have. Received: {axis}"
            )
    places = tuple(axis % x.ndim for axis in axes)
    if len(set(places)) < len(places):
        raise InvalidArgumentError(f"`axes` names an axis twice. Received: {tuple(axes)}")
    return places


def _matrix(x: Tensor, rows: tuple[int, ...], columns: tuple[int, ...]) -> Tensor:
    """Return a tensor as one matrix, whose rows and columns are these axes."""
    order = (*rows, *columns)
    moved = x if order == tuple(range(x.ndim)) else TRANSPOSE(x, perm=order)
    height, width = (math.prod(x.shape[axis] for axis in part) for part in (rows, columns))
    return RESHAPE(moved, shape=(height, width))


def matrix_transpose(
    a: TensorLike, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Return matrices with rows and columns exchanged.

    Args:
        a: A tensor of shape (..., rows, columns).
        name: Accepted for compatibility.
        conjugate: Has nothing to do, since numbers are real.

    Raises:
        ValueError: There are no matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.matrix_transpose([[1, 2], [3, 4]]).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    x = adopt(a, None)
    if x.ndim < 2:
        raise ValueError(
            "Argument `a` should be a (batch) matrix with rank >= 2. Received "
            f"`a` = {x} with shape: {shape_text(x.shape)}"
        )
    return TRANSPOSE(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Return matrices with rows and columns exchanged, which of real numbers is the adjoint.

    Args:
        matrix: A tensor of shape (..., rows, columns).
        name: Accepted for compatibility.

    Raises:
        ValueError: There are no matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.adjoint([[1, 2], [3, 4]]).numpy()
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return matrix_transpose(matrix)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """Return the cross products of vectors of three numbers.

    Args:
        a: A tensor of shape (..., 3).
        b: A tensor of the same shape and dtype.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.cross([1, 0, 0], [0, 1, 0]).numpy()
        array([0, 0, 1], dtype=int32)
    """
    a, b = as_tensors((a, b))
    if a.shape != b.shape:
        raise InvalidArgumentError(
            f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)} "
            "[Op:Cross]"
        )
    if a.shape[-1:] != (3,):
        raise InvalidArgumentError(
            "Cross-products are only defined for 3-element vectors. Received: "
            f"{shape_text(a.shape)} [Op:Cross]"
        )

    def turned(x: Tensor, by: int) -> Tensor:
        return roll(x, -by, x.ndim - 1)

    return SUB(MUL(turned(a, 1), turned(b, 2)), MUL(turned(a, 2), turned(b, 1)))


explain_functions(__name__, all_but="adjoint cross")
