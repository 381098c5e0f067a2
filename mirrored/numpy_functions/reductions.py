"""NumPy's reductions over axes.

Sums of integers and booleans are of 64 bits, and their means are floats.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.numpy_functions.promotion import array, booleans, floats, result_type
from mirrored.numpy_functions.shapes import atleast_1d, ravel
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS, INTEGERS, bool_, int8, int64

Reduction = Callable[..., Tensor]


def _summed_in(tensor: Tensor) -> Tensor:
    """Return integers and booleans in as many bits as Python's have here."""
    if tensor.dtype in FLOATS:
        return tensor
    return ops.cast(tensor, np.uint64 if tensor.dtype.kind == "u" else int64)


def _sum_like(
    function: Reduction, of_bools: Reduction, a: Any, axis: Any, dtype: Any, keepdims: Any
) -> Tensor:
    tensor = array(a, dtype)
    if dtype is not None and tensor.dtype == bool_:
        return of_bools(tensor, axis, bool(keepdims))
    return function(tensor if dtype is not None else _summed_in(tensor), axis, bool(keepdims))


@explained
def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Tensor:
    """Return the sum over axes.

    Args:
        a: The elements.
        axis: One axis, several, or None for all.
        dtype: The dtype; None: int64 or uint64 for integers and booleans.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.sum([[1, 2], [3, 4]], axis=0).numpy()
        array([4, 6])
    """
    return _sum_like(ops.reduce_sum, ops.reduce_any, a, axis, dtype, keepdims)


@explained
def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = None) -> Tensor:
    """Return the product over axes.

    Args and errors: as for `sum`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12])
    """
    return _sum_like(ops.reduce_prod, ops.reduce_all, a, axis, dtype, keepdims)


@explained
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = None
) -> Tensor:
    """Return the mean over axes; that of integers and booleans is float64.

    Args and errors: as for `sum`.

    Raises:
        ValueError: `out` is given.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.mean([1, 2]))
        1.5
    """
    _check_out(out)
    return ops.reduce_mean(
        array(a, dtype) if dtype is not None else floats(a), axis, bool(keepdims)
    )


def _check_out(out: Any) -> None:
    if out is not None:
        raise ValueError("Setting out is not supported.")


def _extreme(function: Reduction, of_bools: Reduction, a: Any, axis: Any, keepdims: Any) -> Tensor:
    tensor = array(a)
    chosen = of_bools if tensor.dtype == bool_ else function
    return chosen(tensor, axis, bool(keepdims))


@explained
def amax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Tensor:
    """Return the largest element over axes.

    Args and errors: as for `mean`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.amax([1, 2]))
        2
    """
    _check_out(out)
    return _extreme(ops.reduce_max, ops.reduce_any, a, axis, keepdims)


@explained
def amin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = None) -> Tensor:
    """Return the smallest element over axes.

    Args and errors: as for `mean`.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.amin([1, 2]))
        1
    """
    _check_out(out)
    return _extreme(ops.reduce_min, ops.reduce_all, a, axis, keepdims)


@explained
def max(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return the largest element over axes, as `amax` does.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.max([1, 2]))
        2
    """
    return amax(a, axis, keepdims=keepdims)


@explained
def min(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return the smallest element over axes, as `amin` does.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.min([1, 2]))
        1
    """
    return amin(a, axis, keepdims=keepdims)


@explained
def ptp(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return the distance of the largest from the smallest element over axes.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.ptp([1, 5, 3]))
        4
    """
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


@explained
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: Any = None,
) -> Tensor:
    """Return the variance over axes.

    Args:
        a: The elements.
        axis: One axis, several, or None for all.
        dtype: The dtype of the result; Python's float is float32, as in TensorFlow. None: that of
            the elements, or float64.
        out: None alone.
        ddof: How many fewer the sum of the squares is divided by.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ValueError: `out` is given.
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.var([1, 2, 3], ddof=1))
        1.0
    """
    _check_out(out)
    tensor = ops.cast(array(a), result_type(a, dtype)) if dtype is not None else floats(a)
    if ddof == 0:
        result = ops.reduce_variance(tensor, axis, bool(keepdims))
    else:
        distances = tensor - ops.reduce_mean(tensor, axis, True)
        squares = ops.reduce_sum(ops.square(distances), axis, bool(keepdims))
        count = tensor.size // (squares.size or 1)
        result = squares / ops.constant(count - ddof, tensor.dtype)
    return ops.cast(result, dtype) if dtype is not None else result


@explained
def std(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return the root of the variance over axes.

    Example:
        >>> import mirrored as mr
        >>> float(mr.experimental.numpy.std([1, 3]))
        1.0
    """
    return ops.reduce_std(floats(a), axis, bool(keepdims))


@explained
def all(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return whether no element over axes is 0.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.all([1, 0]))
        False
    """
    return ops.reduce_all(booleans(a), axis, bool(keepdims))


@explained
def any(a: Any, axis: Any = None, keepdims: Any = None) -> Tensor:
    """Return whether one of the elements over axes is not 0.

    Example:
        >>> import mirrored as mr
        >>> bool(mr.experimental.numpy.any([1, 0]))
        True
    """
    return ops.reduce_any(booleans(a), axis, bool(keepdims))


@explained
def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    """Return how many elements are not 0, over axes.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.count_nonzero([1, 0]))
        1
    """
    return ops.count_nonzero(array(a), axis)


def _placed(function: Reduction, a: Any, axis: int | None) -> Tensor:
    tensor = ravel(a) if axis is None else atleast_1d(a)
    return function(ops.cast(tensor, int8) if tensor.dtype == bool_ else tensor, axis)


@explained
def argmax(a: Any, axis: int | None = None) -> Tensor:
    """Return the index of the largest element along an axis, or among all in a row.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.argmax([1, 5, 3]))
        1
    """
    return _placed(ops.argmax, a, axis)


@explained
def argmin(a: Any, axis: int | None = None) -> Tensor:
    """Return the index of the smallest element along an axis, or among all in a row.

    Example:
        >>> import mirrored as mr
        >>> int(mr.experimental.numpy.argmin([1, 5, 3]))
        0
    """
    return _placed(ops.argmin, a, axis)


def _scanned(function: Reduction, a: Any, axis: int | None, dtype: Any) -> Tensor:
    tensor = array(a, dtype)
    if dtype is None and tensor.dtype in INTEGERS:
        tensor = ops.cast(tensor, np.promote_types(tensor.dtype, int64))
    return function(ravel(tensor), 0) if axis is None else function(tensor, axis)


@explained
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the sums of all elements up to each one.

    Args:
        a: The elements.
        axis: Along which axis; None: that of all elements in a row.
        dtype: The dtype; None: int64 for integers.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.cumsum([1, 2, 3]).numpy()
        array([1, 3, 6])
    """
    return _scanned(ops.cumsum, a, axis, dtype)


@explained
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the products of all elements up to each one.

    Args: as for `cumsum`.

    Example:
        >>> import mirrored as mr
        >>> mr.experimental.numpy.cumprod([1, 2, 3]).numpy()
        array([1, 2, 6])
    """
    return _scanned(ops.cumprod, a, axis, dtype)
