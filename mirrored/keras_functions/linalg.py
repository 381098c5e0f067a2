"""`keras.ops` of matrices: norms, decompositions, linear systems; and products with jacobians."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.autodiff import GradientTape
from mirrored.keras_functions.promotion import kept_axes, promoted_floats, to_floats
from mirrored.ops import Tensor


def norm(
    x: TensorLike,
    ord: str | float | AxisLike | None = None,
    axis: AxisLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of vectors or matrices.

    Args:
        x: Numbers.
        ord: The order. Of vectors: None or a number, infinities too; 0 counts what is not 0. Of
            matrices: None or "fro", the root of the sum of squares; "nuc", the sum of the singular
            values; 2 and -2, the largest and the least of these; 1 and -1, the largest and the
            least sum of a column's absolute values; plus and minus infinity, those of a row's.
        axis: The axis of vectors, or the two of matrices; None: all of one or two.
        keepdims: Whether these axes stay, of size 1.

    Raises:
        ValueError: There is no such order, or no such axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.norm([3.0, 4.0]).numpy().item()
        5.0
    """
    tensor = to_floats(x)
    if axis is None:
        axes = tuple(range(tensor.ndim))
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -tensor.ndim <= axis < tensor.ndim for axis in axes):
        raise ValueError(
            "All `axis` values must be in the range [-ndim, ndim). "
            f"Received inputs with ndim={tensor.ndim}, while axis={axes}"
        )
    axes = tuple(axis % tensor.ndim for axis in axes)
    if len(axes) == 1:
        return _of_vectors(tensor, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"Invalid axis values. Received: axis={axes}")
    return _of_matrices(tensor, ord, axes, keepdims)


def _of_vectors(x: Tensor, order: Any, axis: int, keepdims: bool) -> Tensor:
    if isinstance(order, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={order}")
    if order == 0:
        counted = ops.cast(ops.not_equal(x, ops.zeros_like(x)), x.dtype)
        return ops.reduce_sum(counted, axis, keepdims)
    if order == -math.inf:
        return ops.reduce_min(ops.abs(x), axis, keepdims)
    if order is None or order > 0:
        return ops.norm(x, "euclidean" if order is None else order, axis, keepdims)
    total = ops.reduce_sum(ops.pow(ops.abs(x), float(order)), axis, keepdims)
    return ops.pow(total, 1.0 / order)


def _of_matrices(x: Tensor, order: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if order in (None, "fro"):
        return ops.norm(x, "fro", axes, keepdims)
    if order in (1, -1, math.inf, -math.inf):
        rows, columns = axes if abs(order) == 1 else axes[::-1]
        sums = ops.reduce_sum(ops.abs(x), rows, True)
        extreme = ops.reduce_max if order > 0 else ops.reduce_min
        result = extreme(sums, columns, True)
        return result if keepdims else ops.squeeze(result, list(axes))
    reductions = {"nuc": ops.reduce_sum, 2: ops.reduce_max, -2: ops.reduce_min}
    if order not in reductions:
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={order}")
    others = [axis for axis in range(x.ndim) if axis not in axes]
    values = ops.svd(ops.transpose(x, [*others, *axes]), compute_uv=False)
    return kept_axes(reductions[order](values, -1), axes, keepdims)


def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """Return the triangular matrices whose products with themselves transposed are those given.

    Args:
        x: Symmetric matrices with eigenvalues above 0.
        upper: Whether to return those above the diagonal.

    Raises:
        InvalidArgumentError: A matrix is none of these.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cholesky([[4.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    factor = ops.cholesky(to_floats(x))
    return ops.matrix_transpose(factor) if upper else factor


def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """Return the inverses of the matrices whose triangular matrices are given.

    Args:
        x: What `cholesky` returned.
        upper: Whether these are above the diagonal.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cholesky_inverse([[2.0]]).numpy()
        array([[0.25]], dtype=float32)
    """
    tensor = to_floats(x)
    identity = ops.eye(tensor.shape[-1], dtype=tensor.dtype)
    inverse = ops.triangular_solve(tensor, identity, lower=not upper)
    return ops.matmul(inverse, inverse, transpose_a=not upper, transpose_b=upper)


def det(x: TensorLike) -> Tensor:
    """Return the determinants of square matrices.

    Args:
        x: The matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.det([[2.0, 0.0], [0.0, 3.0]]).numpy().item()
        6.0
    """
    return ops.det(to_floats(x))


def logdet(x: TensorLike) -> Tensor:
    """Return the logarithms of the determinants of symmetric matrices with eigenvalues above 0.

    Args:
        x: The matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logdet([[1.0]]).numpy().item()
        0.0
    """
    return ops.logdet(to_floats(x))


def slogdet(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the signs of determinants, and the logarithms of their absolute values.

    Args:
        x: Square matrices.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().item() for each in mr.keras.ops.slogdet([[-1.0]])]
        [-1.0, 0.0]
    """
    return ops.slogdet(to_floats(x))


def eigh(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of symmetric matrices, and their eigenvectors.

    Args:
        x: The matrices.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy()
        array([1., 2.], dtype=float32)
    """
    return ops.eigh(to_floats(x))


def inv(x: TensorLike) -> Tensor:
    """Return the inverses of square matrices.

    Args:
        x: The matrices.

    Raises:
        InvalidArgumentError: A matrix has none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.inv([[2.0]]).numpy()
        array([[0.5]], dtype=float32)
    """
    return ops.inv(to_floats(x))


def _solved(solve: Callable[..., Tensor], a: Any, b: Any) -> Tensor:
    matrices, sides = promoted_floats(a, b)
    if sides.ndim != matrices.ndim - 1:
        return solve(matrices, sides)
    return ops.squeeze(solve(matrices, ops.expand_dims(sides, -1)), -1)


def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """Return what square matrices have to be multiplied by to give `b`.

    Args:
        a: The matrices.
        b: Matrices, or vectors, of which there is one axis fewer.

    Raises:
        InvalidArgumentError: A matrix has no inverse.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.solve([[2.0]], [4.0]).numpy()
        array([2.], dtype=float32)
    """
    return _solved(ops.solve, a, b)


def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """Return what triangular matrices have to be multiplied by to give `b`.

    Args:
        a: The matrices, of which one triangle counts.
        b: Matrices, or vectors, of which there is one axis fewer.
        lower: Whether that below the diagonal counts.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.solve_triangular([[2.0]], [4.0]).numpy()
        array([2.], dtype=float32)
    """
    return _solved(lambda m, s: ops.triangular_solve(m, s, lower=lower), a, b)


def lstsq(a: TensorLike, b: TensorLike, rcond: TensorLike | None = None) -> Tensor:
    """Return what a matrix has to be multiplied by to be as near to `b` as it gets.

    Args:
        a: A matrix.
        b: A vector or a matrix.
        rcond: Singular values that are smaller than this part of the largest count as 0; None:
            those that are by rounding alone.

    Raises:
        ValueError: They have not equally many rows.
        TypeError: `a` is no matrix, or `b` neither a vector nor a matrix.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.lstsq([[1.0], [1.0]], [2.0, 4.0]).numpy().round(4)
        array([3.], dtype=float32)
    """
    matrix, side = promoted_floats(a, b)
    if matrix.ndim != 2:
        raise TypeError(f"{matrix.ndim}-dimensional array given. Array must be two-dimensional")
    if side.ndim not in (1, 2):
        raise TypeError(
            f"{side.ndim}-dimensional array given. Array must be one or two-dimensional"
        )
    if matrix.shape[0] != side.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    limit = float(np.finfo(matrix.dtype).eps) * max(matrix.shape) if rcond is None else rcond
    columns = ops.expand_dims(side, -1) if side.ndim == 1 else side
    values, left, right = ops.svd(matrix)
    kept = values >= ops.multiply(values[0], limit)
    safe = ops.where(kept, values, ops.ones_like(values))
    inverse = ops.where(kept, ops.reciprocal(safe), ops.zeros_like(values))
    parts = ops.expand_dims(inverse, -1) * ops.matmul(left, columns, transpose_a=True)
    solution = ops.matmul(right, parts)
    return ops.squeeze(solution, -1) if side.ndim == 1 else solution


def pinv(x: TensorLike, rcond: TensorLike | None = None) -> Tensor:
    """Return the pseudo-inverses of matrices.

    Args:
        x: The matrices.
        rcond: Singular values that are smaller than this part of the largest count as 0; None:
            those that are by rounding alone.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.pinv([[2.0], [0.0]]).numpy()
        array([[0.5, 0. ]], dtype=float32)
    """
    return ops.pinv(to_floats(x), rcond)


def matrix_rank(x: TensorLike, tol: TensorLike | None = None) -> Tensor:
    """Return how many rows of matrices are none of the others' sums, int32.

    Args:
        x: The matrices.
        tol: Singular values up to this count as 0; None: those that are by rounding alone.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy().item()
        1
    """
    return ops.matrix_rank(to_floats(x), tol)


def qr(x: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return matrices with columns at right angles, and triangular ones, whose products are given.

    Args:
        x: The products.
        mode: "reduced", or "complete", by which the first ones are square.

    Raises:
        ValueError: The mode is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.qr([[1.0], [0.0]])[0].shape
        (2, 1)
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    return ops.qr(to_floats(x), full_matrices=mode == "complete")


def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular values of matrices between their left and right vectors.

    Args:
        x: The matrices.
        full_matrices: Whether the vectors make square matrices.
        compute_uv: False: the values alone are returned.

    Returns:
        The left vectors as columns, the values, and the right vectors as rows.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.svd([[3.0, 0.0], [0.0, 2.0]])[1].numpy()
        array([3., 2.], dtype=float32)
    """
    tensor = to_floats(x)
    if not compute_uv:
        return ops.svd(tensor, full_matrices, False)
    values, left, right = ops.svd(tensor, full_matrices)
    return left, values, ops.matrix_transpose(right)


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Return what a function returns, and how it changes as its arguments do.

    Args:
        fun: From tensors to a tensor or a structure of them; with `has_aux`, and something else.
        primals: The arguments.
        tangents: How fast each of them changes.
        has_aux: Whether the function returns something else too, which is returned at the end.

    Raises:
        ValueError: There are not as many tangents as arguments.

    Example:
        >>> import mirrored as mr
        >>> value, change = mr.keras.ops.jvp(lambda x: x * x, (3.0,), (1.0,))
        >>> change.numpy().item()
        6.0
    """
    if len(primals) != len(tangents):
        raise ValueError(
            f"Pass one tangent per argument. Received: {len(tangents)} for {len(primals)}."
        )
    inputs = [ops.convert_to_tensor(primal) for primal in primals]
    speeds = [ops.cast(speed, value.dtype) for speed, value in zip(tangents, inputs, strict=True)]
    # A gradient is linear in what flows in: its own gradient is what flows the other way.
    with GradientTape() as outer:
        with GradientTape() as inner:
            inner.watch(inputs)
            outputs = fun(*inputs)
            result, more = outputs if has_aux else (outputs, None)
        flat = _nest.flatten(result)
        factors = [ops.zeros_like(tensor) for tensor in flat]
        outer.watch(factors)
        back = inner.gradient(flat, inputs, output_gradients=factors)
    pairs = [(grad, by) for grad, by in zip(back, speeds, strict=True) if grad is not None]
    changes = outer.gradient(
        [gradient for gradient, _ in pairs],
        factors,
        output_gradients=[by for _, by in pairs],
        unconnected_gradients="zero",
    )
    change = _nest.pack_like(result, changes)
    return (result, change, more) if has_aux else (result, change)


explain_functions(__name__, all_but="")
