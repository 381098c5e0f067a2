"""`keras.ops` that create tensors of a shape, and diagonal and triangular matrices."""

from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import numbers as _numbers
from mirrored.keras_functions.promotion import summands as _summands
from mirrored.numpy_functions import array_creation as matrices
from mirrored.numpy_functions import array_reductions as averages
from mirrored.ops import Tensor
from mirrored.ops.spec import INTEGERS, default_float


@explained
def array(x: Any, dtype: Any = None) -> Tensor:
    """Return a value as a tensor.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.array([1, 2]).dtype.name
        'int32'
    """
    return ops.convert_to_tensor(x) if dtype is None else ops.cast(x, dtype)


@explained
def empty(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros.

    Args:
        shape: The shape.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.empty((2,)).shape
        (2,)
    """
    return ops.zeros(shape, dtype or default_float())


@explained
def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Return zeros in the shape of a tensor.

    Args:
        x: A tensor or an array.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.empty_like([1, 2]).shape
        (2,)
    """
    return ops.zeros_like(x, dtype)


@explained
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return one number in the shape of a tensor.

    Args:
        x: A tensor or an array.
        fill_value: The number.
        dtype: The dtype; None: that of the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.full_like([1, 2], 3).numpy()
        array([3, 3], dtype=int32)
    """
    like = ops.zeros_like(x, dtype)
    return (
        ops.add(like, ops.cast(fill_value, like.dtype))
        if like.dtype in INTEGERS
        else (ops.broadcast_to(ops.cast(fill_value, like.dtype), ops.shape(like)))
    )


@explained
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return a matrix with ones on a diagonal.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal: above 0 on the right of the main one.
        dtype: The dtype; None: floatx.

    Raises:
        TypeError: One of these is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.eye(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    arguments: dict[str, Any] = {"N": N, "M": M, "k": k}
    for name, value in arguments.items():
        if not isinstance(value, int | np.integer) and (name, value) != ("M", None):
            raise TypeError(f"Argument `{name}` must be an integer. Received: {name}={value!r}")
    return matrices.eye(N, M, k, ops.as_dtype(dtype or default_float()))


@explained
def identity(n: int, dtype: Any = None) -> Tensor:
    """Return a square matrix with ones on its main diagonal.

    Args:
        n: The number of rows.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.identity(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


@explained
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return a matrix of ones on a diagonal and below it, and zeros above.

    Args:
        N: The number of rows.
        M: Of columns; None: as many.
        k: The number of the diagonal.
        dtype: The dtype; None: floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tri(2).numpy()
        array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    return matrices.tri(N, M, k, ops.as_dtype(dtype or default_float()))


@explained
def tril(x: Any, k: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Args:
        x: The matrices.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tril([[1, 2], [3, 4]]).numpy()
        array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return matrices.tril(ops.convert_to_tensor(x), k)


@explained
def triu(x: Any, k: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Args:
        x: The matrices.
        k: The number of the diagonal.

    Raises:
        ValueError: They have fewer than two axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.triu([[1, 2], [3, 4]]).numpy()
        array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return matrices.triu(ops.convert_to_tensor(x), k)


@explained
def diag(x: Any, k: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a matrix' diagonal.

    Args:
        x: A vector or a matrix.
        k: The number of the diagonal.

    Raises:
        InvalidArgumentError: It is neither.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return matrices.diag(ops.convert_to_tensor(x), k)


@explained
def diagflat(x: Any, k: int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal.

    Args:
        x: The elements.
        k: The number of the diagonal.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diagflat([[1, 2]]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    return matrices.diagflat(ops.convert_to_tensor(x), k)


@explained
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal of matrices, as the last axis.

    Args:
        x: The matrices.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.diagonal([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    return matrices.diagonal(ops.convert_to_tensor(x), offset, axis1, axis2)


@explained
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the sum of a diagonal of matrices.

    Args:
        x: The matrices.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.trace([[1, 2], [3, 4]]).numpy().item()
        5
    """
    tensor = _summands(x)
    return averages.trace(tensor, offset, axis1, axis2, tensor.dtype)


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
        >>> mr.keras.ops.vander([2, 3]).numpy()
        array([[2, 1],
               [3, 1]], dtype=int32)
    """
    return matrices.vander(_numbers(x), N, increasing)
