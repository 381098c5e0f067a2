"""Matrices from diagonals and diagonals of matrices, and what is made of them.

A diagonal is a slice of the elements in a row, and a matrix a choice by a mask; batches are leading
axes.
"""

import math
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._numbers import as_integer
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, from_host
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.manipulation import pad
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import CAST, RESHAPE
from mirrored.ops.spec import Shape, shape_text
from mirrored.ops.tensor import Tensor

_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _one_diagonal(k: Any, align: str) -> int:
    """Return the number of the diagonal that is meant."""
    if align not in _ALIGNMENTS:
        raise InvalidArgumentError(
            f"Value for attr 'align' of \"{align}\" is not in the list of allowed values: "
            f"{', '.join(_ALIGNMENTS)}"
        )
    if isinstance(k, list | tuple) and 1 <= len(k) <= 2 and k[0] == k[-1]:
        k = k[0]  # A band of one.
    number = as_integer(k)
    if number is None:
        raise NotImplementedError(
            f"`k` must be the number of one diagonal. Received: k={k!r}. Call the function for "
            "each diagonal of a band."
        )
    return number


def _matrix_shape(name: str, x: Tensor) -> tuple[int, int]:
    """Return the numbers of rows and columns of matrices."""
    if x.ndim < 2:
        raise InvalidArgumentError(
            f"input must be at least 2-dim, received shape: {shape_text(x.shape)} [Op:{name}]"
        )
    return x.shape[-2], x.shape[-1]


def _length(name: str, rows: int, columns: int, k: int) -> int:
    """Return how many elements a diagonal has."""
    if k != 0 and not -rows < k < columns:
        raise InvalidArgumentError(
            f"lower_diag_index is out of bound: {k}. It must be between {-rows} and {columns} "
            f"[Op:{name}]"
        )
    return min(rows + min(k, 0), columns - max(k, 0))


def _chosen(diagonal: Tensor, other: Tensor, rows: int, columns: int, k: int) -> Tensor:
    """Return matrices with a diagonal, and elements of `other` elsewhere."""
    after = columns - diagonal.shape[-1] - max(k, 0)
    margins = [[0, 0]] * (diagonal.ndim - 1) + [[max(k, 0), after]]
    # Each column's element of the diagonal, in the column's own place.
    row = pad(diagonal, margins) if max(k, 0) or after else diagonal
    take_constant_room((rows, columns), 1)
    mask = from_host(np.eye(rows, columns, k, dtype=bool))
    spread = RESHAPE(row, shape=(*row.shape[:-1], 1, columns))
    return SELECT(mask, spread, other)


def diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: int = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices that have a diagonal, and another value elsewhere.

    Args:
        diagonal: A tensor of shape (..., n).
        name: Accepted for compatibility.
        k: Which diagonal it is: 0 the main one, above 0 one above it.
        num_rows: How many rows the matrices have; -1: as many as it takes.
        num_cols: How many columns; the same.
        padding_value: The value elsewhere.
        align: Has nothing to do, since all of one diagonal is given.

    Returns:
        A tensor of shape (..., num_rows, num_cols), square where neither is given.

    Raises:
        InvalidArgumentError: The diagonal is a scalar, or the matrices have another one's length.
        NotImplementedError: `k` is a band of diagonals.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x, k = adopt(diagonal, None), _one_diagonal(k, align)
    if not x.ndim:
        raise InvalidArgumentError(
            "diagonal must be at least 1-dim, received shape: [] [Op:MatrixDiagV3]"
        )
    least = x.shape[-1] - min(k, 0), x.shape[-1] + max(k, 0)
    rows, columns = int(num_rows), int(num_cols)
    if rows == columns == -1:
        rows = columns = max(least)
    rows, columns = (
        own if size == -1 else size for size, own in zip((rows, columns), least, strict=True)
    )
    if rows < least[0] or columns < least[1] or (rows != least[0] and columns != least[1]):
        raise InvalidArgumentError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
            f"and diagonal. Received: num_rows={num_rows}, num_cols={num_cols} for a diagonal of "
            f"{x.shape[-1]} and k={k} [Op:MatrixDiagV3]"
        )
    return _chosen(x, CAST(adopt(padding_value, x.dtype), dtype=x.dtype), rows, columns, k)


def diag_part(
    input: TensorLike,
    name: str | None = "diag_part",
    k: int = 0,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return a diagonal of matrices.

    Args:
        input: A tensor of shape (..., rows, columns).
        name: Accepted for compatibility.
        k: Which diagonal: 0 the main one, above 0 one above it.
        padding_value: Has nothing to do, since all of one diagonal is there.
        align: The same.

    Returns:
        A tensor of shape (..., length of the diagonal).

    Raises:
        InvalidArgumentError: There are no matrices, or they have no such diagonal.
        NotImplementedError: `k` is a band of diagonals.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.diag_part([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    x, k = adopt(input, None), _one_diagonal(k, align)
    rows, columns = _matrix_shape("MatrixDiagPartV3", x)
    count = _length("MatrixDiagPartV3", rows, columns, k)
    flat = RESHAPE(x, shape=(*x.shape[:-2], rows * columns))
    first = max(k, 0) - min(k, 0) * columns
    return flat[..., first : first + count * (columns + 1) : columns + 1]


def set_diag(
    input: TensorLike,
    diagonal: TensorLike,
    name: str | None = "set_diag",
    k: int = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices with another diagonal.

    Args:
        input: A tensor of shape (..., rows, columns).
        diagonal: A tensor of shape (..., length of the diagonal), of the same dtype.
        name: Accepted for compatibility.
        k: Which diagonal: 0 the main one, above 0 one above it.
        align: Has nothing to do, since all of one diagonal is given.

    Raises:
        InvalidArgumentError: There are no matrices, or they have no such diagonal; or dtypes or
            shapes do not fit.
        NotImplementedError: `k` is a band of diagonals.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.set_diag([[1, 2], [3, 4]], [0, 9]).numpy()
        array([[0, 2],
               [3, 9]], dtype=int32)
    """
    x, k = adopt(input, None), _one_diagonal(k, align)
    rows, columns = _matrix_shape("MatrixSetDiagV3", x)
    count = _length("MatrixSetDiagV3", rows, columns, k)
    values = adopt(diagonal, x.dtype)
    if values.shape != (*x.shape[:-2], count):
        raise InvalidArgumentError(
            f"Expected diagonal of shape {shape_text((*x.shape[:-2], count))}. Received: "
            f"{shape_text(values.shape)} [Op:MatrixSetDiagV3]"
        )
    return _chosen(values, x, rows, columns, k)


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor whose axes are those of the diagonal twice, and that is 0 elsewhere.

    Args:
        diagonal: A tensor of rank 1 or more.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It is a scalar.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.tensor_diag([[1, 2]]).shape
        (1, 2, 1, 2)
    """
    x = adopt(diagonal, None)
    if not x.ndim:
        raise InvalidArgumentError("Input must be at least rank 1, got 0 [Op:Diag]")
    return RESHAPE(diag(RESHAPE(x, shape=(x.size,))), shape=x.shape + x.shape)


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the elements of a tensor whose first half of indices is the second half.

    Args:
        input: A tensor of shape (..., ...), twice the same.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The shape is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.tensor_diag_part([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    x = adopt(input, None)
    half: Shape = x.shape[: x.ndim // 2]
    if half + half != x.shape:
        raise InvalidArgumentError(
            "The first half of the sizes of the input must be the second half. Received: "
            f"{shape_text(x.shape)} [Op:DiagPart]"
        )
    count = math.prod(half)
    return RESHAPE(diag_part(RESHAPE(x, shape=(count, count))), shape=half)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the sum of the main diagonal of matrices.

    Args:
        x: A tensor of shape (..., rows, columns).
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There are no matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.trace([[1, 2], [3, 4]]).numpy().item()
        5
    """
    return reduce_sum(diag_part(x), axis=-1)


def band_part(
    input: TensorLike, num_lower: TensorLike, num_upper: TensorLike, name: str | None = None
) -> Tensor:
    """Return matrices with zeros outside of a band around their diagonals.

    Args:
        input: The matrices, of shape (..., rows, columns).
        num_lower: How many diagonals below the middle one stay; below 0: all.
        num_upper: How many above it; below 0: all.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no matrix, or a number is no scalar integer, or larger than
            the matrix.

    Example:
        >>> import mirrored as mr
        >>> mr.linalg.band_part([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 0, 1).numpy()
        array([[1, 2, 0],
               [0, 5, 6],
               [0, 0, 9]], dtype=int32)
    """
    x = adopt(input, None)
    rows, columns = _matrix_shape("MatrixBandPart", x)
    below = _band_width(num_lower, rows, "num_lower", "rows")
    above = _band_width(num_upper, columns, "num_upper", "columns")
    take_constant_room((rows, columns), 8)
    across = np.arange(columns) - np.arange(rows)[:, None]  # 0 on the diagonal.
    inside = (across >= -below) & (across <= above)
    return SELECT(from_host(inside), x, from_host(np.zeros((), x.dtype)))


def _band_width(number: Any, size: int, label: str, of: str) -> int:
    width = adopt(number, None)
    check_index_dtype("MatrixBandPart", width.spec, "Tindex")
    if width.ndim:
        raise InvalidArgumentError(
            f"{label} must be scalar, got shape {shape_text(width.shape)} [Op:MatrixBandPart]"
        )
    if int(width) > size:
        raise InvalidArgumentError(
            f"{label} must be negative or less or equal to number of {of} ({size}) got: "
            f"{int(width)} [Op:MatrixBandPart]"
        )
    return size if int(width) < 0 else int(width)


explain_functions(__name__, all_but="tensor_diag_part trace")
