"""Norms of vectors and of matrices, and what is divided by them: formulas of ops, as TensorFlow's.

A norm that is 0 has no slope, and its gradient is NaN there where something flows in.
"""

import math
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import ABS, MUL, divide
from mirrored.ops.powers import POW, SQRT
from mirrored.ops.reduction import SUM, reduce, reduce_max, reduce_sum
from mirrored.ops.shaping import CAST, RESHAPE, normalize_axis, squeeze, transpose
from mirrored.ops.spec import FLOATS, INTEGERS, NUMBERS, bool_, check_dtype, float64
from mirrored.ops.spectra import svd
from mirrored.ops.tensor import Tensor

_MATRIX_ORDERS = ("euclidean", "fro", 1, 2, math.inf)


def norm(
    tensor: TensorLike,
    ord: str | float | AxisLike = "euclidean",
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the norm of vectors or matrices.

    Args:
        tensor: Floats; for the orders 1 and infinity integers too.
        ord: The order. Of vectors: "euclidean" or any number above 0, also infinity, which gives
            the largest absolute value. Of matrices: "euclidean" and "fro", the root of the sum of
            squares; 1, the largest sum of a column's absolute values; infinity, that of a row's;
            2, the largest singular value.
        axis: The axis that vectors are along; a tuple or list of the two that the rows and columns
            of matrices are counted along; None: the whole tensor is one vector.
        keepdims: Whether these axes stay, with size 1.
        name: Accepted for compatibility.

    Raises:
        ValueError: There is no such order, or `axis` is none of these.
        InvalidArgumentError: There is no such axis, or the tensor holds integers.
        TypeError: It holds booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.norm([[3.0, -4.0], [6.0, 8.0]], axis=1).numpy()
        array([ 5., 10.], dtype=float32)
        >>> float(mr.norm([[3.0, -4.0], [6.0, 8.0]], ord=1, axis=[0, 1]))
        12.0
    """
    is_matrix = isinstance(axis, tuple | list) and len(axis) == 2
    _check_axis(axis, is_matrix)
    _check_order(ord, is_matrix)
    x = adopt(tensor, None)
    if x.dtype == bool_:
        raise TypeError(
            "Expected numeric or variant tensor, got dtype bool. Cast it with mr.cast. [Op:norm]"
        )
    kept = _norm(x, ord, tuple(axis) if isinstance(axis, list) else axis, is_matrix)
    return kept if keepdims else squeeze(kept, axis)


def _check_axis(axis: Any, is_matrix: bool) -> None:
    axes = axis if is_matrix else [axis]
    fits = all(isinstance(entry, int) for entry in axes) and len({*axes}) == len(axes)
    if axis is not None and not fits:
        raise ValueError(
            f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}"
        )


def _check_order(order: Any, is_matrix: bool) -> None:
    if is_matrix:
        if order not in _MATRIX_ORDERS:
            raise ValueError(
                f"'ord' must be a supported matrix norm in {list(_MATRIX_ORDERS)}, got {order}"
            )
    elif order != "euclidean" and (isinstance(order, str) or not order > 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {order}")


def _norm(x: Tensor, order: Any, axis: Any, is_matrix: bool) -> Tensor:
    """Return a norm with the axes that it is over."""
    if is_matrix and order == 2:
        return _largest_singular_value(x, axis)
    if order in ("fro", "euclidean", 2):
        return SQRT(reduce_sum(MUL(x, x), axis, True))
    sizes = ABS(x)
    if order == 1:
        sums = reduce_sum(sizes, axis[0] if is_matrix else axis, True)
        return reduce_max(sums, axis[1], True) if is_matrix else sums
    if order == math.inf:
        if is_matrix:
            sizes, axis = reduce_sum(sizes, axis[1], True), axis[0]
        return reduce_max(sizes, axis, True)
    total = reduce_sum(POW(sizes, order), axis, True)
    return POW(total, convert_to_tensor(1.0 / order, total.dtype))


def _largest_singular_value(x: Tensor, axes: tuple[int, int]) -> Tensor:
    """Return those of the matrices along two axes, which stay with size 1."""
    rows, columns = (normalize_axis("Svd", axis, x.ndim) for axis in axes)
    if rows == columns:
        raise InvalidArgumentError(
            f"The two axes of matrices must differ. Received: axis={axes} [Op:Svd]"
        )
    order = [*(i for i in range(x.ndim) if i not in (rows, columns)), rows, columns]
    largest = reduce_max(svd(transpose(x, order), compute_uv=False), -1)
    shape = [1 if i in (rows, columns) else size for i, size in enumerate(x.shape)]
    return RESHAPE(largest, shape=tuple(shape))


def normalize(
    tensor: TensorLike,
    ord: str | float | AxisLike = "euclidean",
    axis: AxisLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return a tensor divided by its norm, and that norm; zeros become NaN.

    `l2_normalize` keeps zeros.

    Args and errors: as for `norm`.

    Example:
        >>> import mirrored as mr
        >>> unit, norm = mr.linalg.normalize([[3.0, 4.0], [6.0, 8.0]], axis=1)
        >>> unit.numpy()
        array([[0.6, 0.8],
               [0.6, 0.8]], dtype=float32)
        >>> norm.numpy()
        array([[ 5.],
               [10.]], dtype=float32)
    """
    x = adopt(tensor, None)
    length = norm(x, ord, axis, True)
    return divide(x, length), length


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Return half the sum of the squares of all elements.

    Args:
        t: Floats.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It holds no floats.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.l2_loss([3.0, 4.0]))
        12.5
    """
    x = adopt(t, None)
    check_dtype("L2Loss", FLOATS, x.spec)
    return reduce_sum(MUL(x, x)) * 0.5


def reduce_euclidean_norm(
    input_tensor: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the root of the sum of the squares over axes; that of integers is rounded to zero.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.math.reduce_euclidean_norm([3.0, 4.0]))
        5.0
    """
    x = adopt(input_tensor, None)
    check_dtype("EuclideanNorm", NUMBERS, x.spec)
    total = reduce(SUM, MUL(x, x), axis, keepdims)
    if x.dtype in INTEGERS:
        return CAST(SQRT(CAST(total, dtype=float64)), dtype=x.dtype)
    return SQRT(total)


explain_functions(__name__, all_but="")
