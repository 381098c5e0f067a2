"""NumPy's products of vectors and matrices, in the promoted dtype."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.numpy_functions.array_conversion import array, axis_of, promoted
from mirrored.numpy_functions.array_manipulation import moveaxis
from mirrored.numpy_functions.ufuncs import multiply
from mirrored.ops import Tensor

_PATHS = {True: "greedy", False: "greedy", "greedy": "greedy", "optimal": "optimal"}


def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the sum of products over the last axis of `a` and the last but one of `b`.

    Args:
        a: A tensor, an array, a number or nested lists of these.
        b: Another one; of a vector the only axis counts, and a number is a factor.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.dot([1, 2], [3, 4]))
        11
    """
    x, y = promoted(a, b)
    if not x.ndim or not y.ndim:
        return ops.multiply(x, y)
    return ops.tensordot(x, y, [[-1], [-1 if y.ndim == 1 else -2]])


def matmul(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Return the product of matrices, batches of them or vectors.

    Args:
        x1: Matrices, or a vector.
        x2: Matrices, or a vector.

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.matmul([[1, 2]], [[3], [4]]).numpy()
        array([[11]])
    """
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return ops.tensordot(a, b, 1)
    return ops.tensordot(a, b, [[0], [-2]]) if a.ndim == 1 else ops.matmul(a, b)


def tensordot(
    a: TensorLike, b: TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2
) -> Tensor:
    """Return the sum of products over axes of both.

    Args:
        a: A tensor, an array, a number or nested lists of these.
        b: Another one.
        axes: How many last axes of `a` and first ones of `b`; or the axes of each.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.tensordot([1, 2], [3, 4], 1))
        11
    """
    x, y = promoted(a, b)
    return ops.tensordot(x, y, axes)


def inner(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the sum of products over the last axes of both; a number is a factor.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.inner([1, 2], [3, 4]))
        11
    """
    x, y = promoted(a, b)
    if not x.ndim or not y.ndim:
        return ops.multiply(x, y)
    return ops.tensordot(x, y, [[-1], [-1]])


def vdot(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the sum of the products of all elements.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.vdot([[1, 2]], [[3], [4]]))
        11
    """
    x, y = (ops.reshape(vector, [-1]) for vector in promoted(a, b))
    return ops.tensordot(x, y, 1)


def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the products of each element of one value with each of the other one.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.outer([1, 2], [3, 4]).numpy()
        array([[3, 4],
               [6, 8]])
    """
    x, y = promoted(a, b)
    return multiply(ops.reshape(x, [-1, 1]), ops.reshape(y, [-1]))


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the second value once for each element of the first one, multiplied by it.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.kron([1, 10], [1, 2]).numpy()
        array([ 1,  2, 10, 20])
    """
    x, y = promoted(a, b)
    rank = max(x.ndim, y.ndim)
    sizes, other = ([1] * (rank - value.ndim) + list(value.shape) for value in (x, y))
    spread = ops.reshape(x, [size for length in sizes for size in (length, 1)])
    inside = ops.reshape(y, [size for length in other for size in (1, length)])
    return ops.reshape(multiply(spread, inside), [m * n for m, n in zip(sizes, other, strict=True)])


def cross(
    a: TensorLike,
    b: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """Return the cross product of vectors of two or three numbers.

    Args:
        a: Vectors.
        b: Others, of a shape that broadcasts.
        axisa: The axis of `a` along which a vector's numbers are.
        axisb: That of `b`.
        axisc: That of the result, which has none where all vectors are of two numbers.
        axis: All three at once.

    Raises:
        InvalidArgumentError: Vectors are of other lengths.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.cross([1, 0, 0], [0, 1, 0]).numpy()
        array([0, 0, 1])
    """
    places = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    vectors = [moveaxis(x, place, -1) for x, place in zip(promoted(a, b), places, strict=False)]
    lengths = [vector.shape[-1] for vector in vectors]
    if not {*lengths} <= {2, 3}:
        raise InvalidArgumentError(f"Cross products are of 3-element vectors: {lengths} [Op:Cross]")
    x, y = (
        value if value.shape[-1] == 3 else ops.pad(value, [[0, 0]] * (value.ndim - 1) + [[0, 1]])
        for value in vectors
    )
    together = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    product = ops.cross(ops.broadcast_to(x, together), ops.broadcast_to(y, together))
    if lengths == [2, 2]:
        return product[..., 2]
    return moveaxis(product, -1, axis_of(places[2], product.ndim))


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Return sums of products that letters describe, as `einsum` does.

    Args:
        subscripts: The letters.
        *operands: The values.
        **kwargs: `casting`, "safe" or "no", by which dtypes have to be one; `optimize`, a boolean,
            "greedy" or "optimal".

    Raises:
        ValueError: They are others.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.einsum("i,i", [1, 2], [3, 4]))
        11
    """
    casting, optimize = kwargs.get("casting", "safe"), kwargs.get("optimize", False)
    if casting not in ("safe", "no"):
        raise ValueError(f"Expected casting='safe' or casting='no'. Received: casting={casting}")
    if optimize not in _PATHS:
        raise ValueError(
            f"Expected one of True, 'greedy', 'optimal'. Received: optimize={optimize}"
        )
    values = promoted(*operands) if casting == "safe" else [array(operand) for operand in operands]
    return ops.einsum(subscripts, *values, optimize=_PATHS[optimize])


explain_functions(__name__)
