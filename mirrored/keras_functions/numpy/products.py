"""`keras.ops` that multiply and sum: products of vectors, matrices and tensors."""

from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.keras_functions.promotion import (
    promoted_floats,
    promoted_tensors,
    to_tensors,
    widened,
)
from mirrored.numpy_functions import array_products
from mirrored.ops import Tensor


def _matrix_product(first: Tensor, second: Tensor) -> Tensor:
    added = [-2] * (first.ndim == 1) + [-1] * (second.ndim == 1)
    first = ops.expand_dims(first, 0) if first.ndim == 1 else first
    second = ops.expand_dims(second, 1) if second.ndim == 1 else second
    product = ops.matmul(first, second)
    return ops.squeeze(product, added) if added else product


def dot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the sum of products over the last axis of `x1` and the last but one of `x2`.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one; of a vector the only axis counts, and a number is a factor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.dot([1, 2], [3, 4]).numpy().item()
        11
    """
    return widened(array_products.dot)(*promoted_tensors(x1, x2))


def inner(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the sum of products over the last axes of both; a number is a factor.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.inner([1, 2], [3, 4]).numpy().item()
        11
    """
    return widened(array_products.inner)(*promoted_tensors(x1, x2))


def vdot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the sum of the products of all elements.

    Args:
        x1: A tensor or an array.
        x2: Another one of as many elements.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.vdot([[1, 2]], [[3], [4]]).numpy().item()
        11
    """
    return widened(array_products.vdot)(*promoted_tensors(x1, x2))


def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the matrix product, also with vectors, in the dtype that both promote to.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.matmul([[1, 2]], [[3.0], [4.0]]).numpy().item()
        11.0
    """
    return widened(_matrix_product)(*promoted_tensors(x1, x2))


def outer(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the products of each element of one value with each of the other one.

    Args:
        x1: A tensor, an array or a number.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.outer([1, 2], [3, 4]).numpy()
        array([[3, 4],
               [6, 8]], dtype=int32)
    """
    return widened(array_products.outer)(*promoted_tensors(x1, x2))


def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the second value once for each element of the first one, multiplied by it.

    Args:
        x1: A tensor or an array.
        x2: Another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.kron([1, 10], [1, 2]).numpy()
        array([ 1,  2, 10, 20], dtype=int32)
    """
    return widened(array_products.kron)(*promoted_tensors(x1, x2))


def cross(
    x1: TensorLike,
    x2: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """Return the cross product of vectors of two or three numbers.

    Args:
        x1: Vectors.
        x2: Others, of a shape that broadcasts.
        axisa: The axis of `x1` along which a vector's numbers are.
        axisb: That of `x2`.
        axisc: That of the result.
        axis: All three at once.

    Raises:
        InvalidArgumentError: Vectors are of other lengths.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cross([1, 0, 0], [0, 1, 0]).numpy()
        array([0, 0, 1], dtype=int32)
    """
    axes = (axisa, axisb, axisc, axis)
    return widened(lambda a, b: array_products.cross(a, b, *axes))(*promoted_tensors(x1, x2))


def tensordot(
    x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2
) -> Tensor:
    """Return the sum of products over axes of both.

    Args:
        x1: A tensor or an array.
        x2: Another one.
        axes: How many last axes of `x1` and first ones of `x2`; or the axes of each.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.tensordot([1, 2], [3, 4], 1).numpy().item()
        11
    """
    return widened(lambda a, b: ops.tensordot(a, b, axes))(*promoted_tensors(x1, x2))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Return sums of products that letters describe.

    Args:
        subscripts: The letters, as in "ij,jk->ik".
        *operands: The values.
        **kwargs: As for `mr.einsum`.

    Raises:
        ValueError: The letters do not fit the values.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.einsum("i,i", [1, 2], [3, 4]).numpy().item()
        11
    """
    values = to_tensors(*operands)
    if {operand.dtype for operand in values} == {ops.int8}:
        values = [ops.cast(operand, ops.int32) for operand in values]  # As Keras adds them up.
    product = widened(lambda *factors: ops.einsum(subscripts, *factors, **kwargs))
    return product(*promoted_tensors(*values))


_MODES = ("valid", "same", "full")


def correlate(x1: TensorLike, x2: TensorLike, mode: str = "valid") -> Tensor:
    """Return the sums of products of a vector with another one, at each place of that.

    Args:
        x1: A vector.
        x2: Another one.
        mode: "valid": where they overlap wholly; "same": as many as the longer one has; "full":
            wherever they overlap.

    Raises:
        ValueError: The mode is another one, or a value is no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.correlate([1.0, 2.0, 3.0], [0.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """
    if mode not in _MODES:
        raise ValueError(f"`mode` must be one of {', '.join(_MODES)}. Received: mode={mode!r}")
    first, second = promoted_tensors(x1, x2)
    if first.dtype == ops.int64:
        first, second = (ops.cast(signal, ops.float64) for signal in (first, second))
    first, second = promoted_floats(first, second)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(
            f"`correlate` takes vectors. Received: shapes {first.shape} and {second.shape}"
        )
    m, n = first.shape[0], second.shape[0]
    padded = ops.pad(first, [[n - 1, n - 1]])
    places = ops.reshape(ops.range(m + n - 1), (-1, 1)) + ops.range(n)
    everywhere = ops.matvec(ops.gather(padded, places), second)
    if mode == "full":
        return everywhere
    length = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    # Which half is cut off goes by the longer one.
    begin = (m + n - 1 - length) // 2 if m >= n else (m + n - length) // 2
    return everywhere[begin : begin + length]


explain_functions(__name__, all_but="matmul")
