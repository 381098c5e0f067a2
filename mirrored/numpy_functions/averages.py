"""NumPy's weighted means, means without NaN, differences and traces."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.numpy_functions.matrices import diagonal
from mirrored.numpy_functions.promotion import FLOAT, array, floats, result_type
from mirrored.numpy_functions.reductions import mean, prod, sum
from mirrored.numpy_functions.unary import isnan
from mirrored.ops import Tensor
from mirrored.ops.hooks import take_constant_room
from mirrored.ops.spec import FLOATS, bool_

_OF_A_STEP = 1 << 12  # Bytes that the operations of a step take in a graph, about.


@explained
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Return how far each element is from the next one along an axis.

    Args:
        a: The elements; of booleans it is whether they differ.
        n: How often to do so.
        axis: The axis.

    Raises:
        ValueError: There is no such axis, or `n` is negative.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.diff([1, 4, 9]).numpy()
        array([3, 5])
    """
    tensor = array(a)
    if (axis + tensor.ndim if axis < 0 else axis) >= tensor.ndim:
        raise ValueError(f"Argument `axis` (received axis={axis}) is out of bounds.")
    if n < 0:
        raise ValueError(f"Argument `n` must be a non-negative integer. Received: n={n!r}")
    behind, before = [slice(None)] * tensor.ndim, [slice(None)] * tensor.ndim
    behind[axis], before[axis] = slice(1, None), slice(None, -1)
    between = ops.not_equal if tensor.dtype == bool_ else ops.subtract
    times = min(n, tensor.shape[axis])  # Then there are no elements left.
    take_constant_room((times,), _OF_A_STEP)
    for _ in range(times):
        tensor = between(tensor[tuple(behind)], tensor[tuple(before)])
    return tensor


def _without_nan(a: Any, value: float) -> Tensor:
    tensor = array(a)
    if tensor.dtype not in FLOATS:
        return tensor
    return ops.where(isnan(tensor), ops.constant(value, tensor.dtype), tensor)


@explained
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over axes, in which NaN counts as 0.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nansum([1.0, np.nan]))
        1.0
    """
    return sum(_without_nan(a, 0), axis, dtype, keepdims)


@explained
def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes, in which NaN counts as 1.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nanprod([2.0, np.nan]))
        2.0
    """
    return prod(_without_nan(a, 1), axis, dtype, keepdims)


@explained
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Tensor:
    """Return the mean over axes of the elements that are not NaN.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.nanmean([1.0, 3.0, np.nan]))
        2.0
    """
    tensor = array(a)
    if tensor.dtype not in FLOATS:
        return mean(tensor, axis, dtype, keepdims=keepdims)
    kind = tensor.dtype if dtype is None else dtype
    counted = sum(ops.logical_not(isnan(tensor)), axis, kind, keepdims)
    return nansum(tensor, axis, kind, bool(keepdims)) / counted


@explained
def average(a: Any, axis: int | None = None, weights: Any = None, returned: bool = False) -> Any:
    """Return the mean over an axis, of elements that weigh differently.

    Args:
        a: The elements.
        axis: The axis; None: all.
        weights: What each weighs, of the elements' shape, or a vector along the axis; None: all the
            same.
        returned: Whether to return the sum of the weights as well.

    Raises:
        ValueError: The axis is none.
        InvalidArgumentError: The weights' shape does not fit.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.average([1, 2], weights=[3, 1]))
        1.25
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"Argument `axis` must be an integer. Received axis={axis}")
    tensor = array(a)
    if weights is None:
        tensor = floats(tensor)
        total: Any = tensor.size if axis is None else tensor.shape[axis]
        result = ops.reduce_mean(tensor, axis)
        total = ops.constant(total, tensor.dtype)
    else:
        result, total = _weighted(tensor, weights, axis)
    return (result, ops.broadcast_to(total, result.shape)) if returned else result


def _weighted(tensor: Tensor, weights: Any, axis: int | None) -> tuple[Tensor, Tensor]:
    kinds = (tensor.dtype, weights) if tensor.dtype in FLOATS else (tensor.dtype, weights, FLOAT)
    kind = result_type(*kinds)
    tensor, parts = array(tensor, kind), array(weights, kind)
    if axis is not None and parts.ndim != tensor.ndim:
        if parts.ndim != 1:
            raise InvalidArgumentError(
                f"Weights are of shape {tensor.shape}, or a vector. Received: {parts.shape}"
            )
        total = ops.reduce_sum(parts)
        return ops.tensordot(tensor, parts, [[axis], [0]]) / total, total
    if parts.shape != tensor.shape:
        raise InvalidArgumentError(
            f"Weights are of shape {tensor.shape}, or a vector. Received: {parts.shape}"
        )
    total = ops.reduce_sum(parts, axis)
    return ops.reduce_sum(tensor * parts, axis) / total, total


@explained
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum of a diagonal of matrices.

    Args:
        a: The matrices.
        offset: The number of the diagonal.
        axis1: The axis of the rows.
        axis2: That of the columns.
        dtype: The dtype; None: that of the elements for the main diagonal of the last two axes, and
            otherwise as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.trace([[1, 2], [3, 4]]))
        5
    """
    tensor = array(a, dtype)
    rank = tensor.ndim
    if offset == 0 and axis1 in (-2, rank - 2) and axis2 in (-1, rank - 1):
        return ops.trace(tensor)
    return sum(diagonal(tensor, offset, axis1, axis2), -1, dtype)
