"""NumPy's functions that create diagonal and triangular matrices, and grids."""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.numpy_functions.creation import kind_of
from mirrored.numpy_functions.promotion import array
from mirrored.numpy_functions.shapes import moveaxis
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room


@explained
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """Return a matrix with ones on a diagonal.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal: above 0 on the right of the main one.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.eye(2, k=1).numpy()
        array([[0., 1.],
               [0., 0.]])
    """
    take_constant_room((int(N), int(M or N)), kind_of(dtype).itemsize)
    return ops.constant(np.eye(int(N), int(M or N), int(k), dtype=kind_of(dtype)))


@explained
def identity(n: int, dtype: Any = float) -> Tensor:
    """Return a square matrix with ones on its main diagonal.

    Args:
        n: The number of rows.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.identity(2).numpy()
        array([[1., 0.],
               [0., 1.]])
    """
    return eye(n, n, dtype=dtype)


@explained
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return a matrix of ones on a diagonal and below it, and zeros above.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]])
    """
    take_constant_room((N, N if M is None else M), kind_of(dtype).itemsize)
    return ops.constant(np.tri(N, N if M is None else M, k, dtype=kind_of(dtype)))


def _triangle(name: str, m: Any, k: int) -> tuple[Tensor, Tensor]:
    matrices = array(m)
    if matrices.ndim < 2:
        raise ValueError(f"Argument to {name} must have rank at least 2")
    take_constant_room(matrices.shape[-2:], 1)
    below = ops.constant(np.tri(matrices.shape[-2], matrices.shape[-1], k, dtype=bool))
    return matrices, ops.broadcast_to(below, matrices.shape)


@explained
def tril(m: Any, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        m: The matrices.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.tril([[1, 2], [3, 4]]).numpy()
        array([[1, 0],
               [3, 4]])
    """
    matrices, below = _triangle("tril", m, k)
    return ops.where(below, matrices, ops.zeros_like(matrices))


@explained
def triu(m: Any, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args and errors: as for `tril`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.triu([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [0, 4]])
    """
    matrices, below = _triangle("triu", m, k - 1)
    return ops.where(below, ops.zeros_like(matrices), matrices)


@explained
def diag(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a matrix' diagonal.

    Args:
        v: A vector or a matrix.
        k: The number of the diagonal.

    Raises:
        InvalidArgumentError: It is neither.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]])
    """
    x = array(v)
    if x.ndim not in (1, 2):
        raise InvalidArgumentError(f"`diag` takes a vector or a matrix. Received: shape {x.shape}")
    if x.ndim == 2:
        return diagonal(x, k)
    return ops.diag(x, k=k) if x.size else ops.zeros([abs(k)] * 2, x.dtype)


@explained
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal of matrices, as the last axis.

    Args:
        a: The matrices.
        offset: The number of the diagonal; one that they have not is empty.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diagonal([[1, 2], [3, 4]]).numpy()
        array([1, 4])
    """
    x = array(a)
    moved = moveaxis(x, (axis1, axis2), (-2, -1))
    if not -moved.shape[-2] < offset < moved.shape[-1]:
        return ops.zeros((*moved.shape[:-2], 0), x.dtype)
    return ops.diag_part(moved, k=offset)


@explained
def diagflat(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal.

    Args:
        v: The elements.
        k: The number of the diagonal.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diagflat([[1, 2]]).numpy()
        array([[1, 0],
               [0, 2]])
    """
    return diag(ops.reshape(array(v), [-1]), k)


@explained
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element, as a row.

    Args:
        x: A vector.
        N: How many; None: as many as elements.
        increasing: Whether they begin with the power 0.

    Raises:
        ValueError: `x` is no vector, or `N` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.vander([2, 3]).numpy()
        array([[2, 1],
               [3, 1]])
    """
    vector = array(x)
    if vector.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = len(vector) if N is None else int(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    take_constant_room((count,), 8)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return ops.pow(ops.expand_dims(vector, -1), ops.constant(powers.astype(vector.dtype)))


@explained
def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Return the indices of a main diagonal, along each axis.

    Args:
        n: The length of the axes.
        ndim: How many there are.

    Raises:
        ValueError: One of both is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diag_indices(2)[0].numpy()
        array([0, 1], dtype=int32)
    """
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (ops.range(n),) * ndim


def meshgrid(*xi: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis.

    Args:
        *xi: The coordinates along each axis.
        **kwargs: `indexing`, "xy" or "ij"; `sparse`, False; and `copy`, True.

    Raises:
        ValueError: They are others.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.meshgrid([1, 2], [3])[1].numpy()
        array([[3, 3]])
    """
    if kwargs.get("sparse", False) or not kwargs.get("copy", True):
        raise ValueError("`meshgrid` takes sparse=False and copy=True alone. Leave them out.")
    grid = [array(coordinates) for coordinates in xi]
    indexing = kwargs.get("indexing", "xy")
    if len({axis.dtype for axis in grid}) < 2:
        return list(ops.meshgrid(*grid, indexing=indexing))
    places = ops.meshgrid(*(ops.range(axis.size) for axis in grid), indexing=indexing)
    pairs = zip(grid, places, strict=True)
    return [ops.gather(ops.reshape(axis, [-1]), place) for axis, place in pairs]
