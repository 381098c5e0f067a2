"""`keras.ops` that sort elements or depend on their order, such as quantiles."""

import math
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import common as _common
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES


@explained
def sort(x: Any, axis: int | None = -1) -> Tensor:
    """Return the elements in order along an axis.

    Args:
        x: Numbers.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sort([3, 1, 2]).numpy()
        array([1, 2, 3], dtype=int32)
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype == ops.bool_:
        return ops.cast(sort(ops.cast(tensor, ops.int32), axis), ops.bool_)
    return ops.sort(ops.reshape(tensor, [-1]), 0) if axis is None else ops.sort(tensor, axis)


@explained
def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """Return the indices of the elements in order along an axis, int32.

    Args:
        x: Numbers.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argsort([3, 1, 2]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    tensor = ops.convert_to_tensor(x)
    if tensor.dtype == ops.bool_:
        tensor = ops.cast(tensor, ops.int32)
    if axis is None:
        return ops.argsort(ops.reshape(tensor, [-1]), 0)
    return ops.argsort(tensor, axis)


@explained
def argpartition(x: Any, kth: int, axis: int = -1) -> Tensor:
    """Return indices by which the element of a number is where it would be in order, int32.

    Those before it are no larger, those behind it no smaller; here all of them are in order.

    Args:
        x: Numbers.
        kth: The number of the element.
        axis: Along which axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argpartition([3, 1, 2], 0).numpy()[0].item()
        1
    """
    tensor = ops.convert_to_tensor(x)
    length = tensor.shape[axis]
    if not -length <= kth < length:
        raise ValueError(f"kth={kth} is out of bounds for an axis of size {length}.")
    return argsort(tensor, axis)


@explained
def top_k(x: Any, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the largest elements along the last axis, and where they are.

    Args:
        x: Numbers.
        k: How many.
        sorted: Whether they have to be in order, as they always are.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.top_k([1, 3, 2], 2)[0].numpy()
        array([3, 2], dtype=int32)
    """
    return ops.top_k(x, k, sorted)


@explained
def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Return whether each row has its target among its largest elements.

    Args:
        targets: Places in the rows.
        predictions: The rows, float32.
        k: How many the largest are.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.in_top_k([0, 1], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], 2).numpy()
        array([False,  True])
    """
    places = ops.convert_to_tensor(targets)
    places = places if places.dtype in INDICES else ops.cast(places, ops.int64)
    return ops.in_top_k(places, predictions, k)


@explained
def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Return where values stand in numbers that are in order, int32.

    Args:
        sorted_sequence: A vector of numbers in order.
        values: The values, of any shape.
        side: "left": before equal ones, or "right": behind them.

    Raises:
        ValueError: There is no vector, or the side is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.searchsorted([1, 3, 5], [3, 4]).numpy()
        array([1, 2], dtype=int32)
    """
    numbers, wanted = _common(*_tensors(sorted_sequence, values))
    if numbers.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={numbers.shape}"
        )
    indices = ops.searchsorted(numbers, ops.reshape(wanted, [-1]), side)
    return ops.reshape(indices, ops.shape(wanted))


@explained
def digitize(x: Any, bins: Any) -> Tensor:
    """Return the number of the bin that each element is in, int32.

    Args:
        x: Numbers.
        bins: Where each bin after the first one begins, a vector in order.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.digitize([0.5, 1.5], [1.0, 2.0]).numpy()
        array([0, 1], dtype=int32)
    """
    return searchsorted(bins, x, "right")


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _rows(x: Tensor, axis: Any) -> tuple[Tensor, list[int]]:
    """Return a tensor with the axes that are reduced as its last one, and which they are."""
    if axis is None:
        axes = list(range(x.ndim))
    else:
        axes = [index % x.ndim for index in ([axis] if isinstance(axis, int) else axis)]
    others = [index for index in range(x.ndim) if index not in axes]
    moved = ops.transpose(x, others + axes)
    kept = [x.shape[index] for index in others]
    return ops.reshape(moved, [*kept, math.prod(x.shape[index] for index in axes)]), axes


def _between(ordered: Tensor, at: Tensor, method: str) -> Tensor:
    """Return what stands at places, which may lie between two, along the last axis."""
    last = ordered.shape[-1] - 1

    def element(place: Tensor) -> Tensor:
        return ops.gather(ordered, ops.clip_by_value(ops.cast(place, ops.int32), 0, last), axis=-1)

    if method == "nearest":
        return element(ops.round(at))
    if method in ("lower", "higher"):
        return element(ops.floor(at) if method == "lower" else ops.ceil(at))
    if method == "midpoint":
        return 0.5 * (element(ops.floor(at)) + element(ops.ceil(at)))
    below = ops.maximum(ops.ceil(at) - 1.0, 0.0)
    above = ops.minimum(below + 1.0, float(last))
    part = ops.cast(above - at, ordered.dtype)
    # Nothing times infinity would be NaN.
    lower = ops.multiply_no_nan(element(below), part)
    return ops.multiply_no_nan(element(above), 1.0 - part) + lower


@explained
def quantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return quantiles: a fraction `q` of the elements is below them.

    Args:
        x: Numbers.
        q: The part, from 0 to 1; or a vector of parts, whose axis is the first one of the result.
        axis: Over which axis or axes; None: all.
        method: What is taken where that lies between two elements: "linear", "lower", "higher",
            "midpoint" or "nearest".
        keepdims: Whether the axes stay, of size 1.

    Raises:
        ValueError: The method is another one, or `q` has more than one axis.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.quantile([1.0, 2.0, 4.0], 0.75).numpy().item()
        3.0
    """
    return _quantile(_floats(x), q, axis, method, keepdims)


def _quantile(tensor: Tensor, q: Any, axis: Any, method: str, keepdims: bool) -> Tensor:
    if method not in _METHODS:
        raise ValueError(f"Invalid method: {method}. Valid methods are {', '.join(_METHODS)}.")
    parts = ops.cast(q, ops.float64)
    if parts.ndim > 1:
        raise ValueError(f"`q` must be a scalar or 1D array. Received shape {parts.shape}.")
    rows, axes = _rows(tensor, axis)
    # The host's numbers of a place are exact where those of float32 are not.
    result = _between(ops.sort(rows, -1), parts * (rows.shape[-1] - 1.0), method)
    unknown = ops.reduce_any(ops.is_nan(rows), -1)
    if parts.ndim:
        unknown = ops.expand_dims(unknown, -1)
    result = ops.where(unknown, ops.constant(np.nan, result.dtype), result)
    return _in_place(result, tensor, axes, parts.ndim, keepdims)


def _in_place(result: Tensor, x: Tensor, axes: list[int], parts: int, keepdims: bool) -> Tensor:
    """Return quantiles with the axis of parts in front, and reduced axes where they were."""
    if parts:
        result = ops.transpose(result, [result.ndim - 1, *range(result.ndim - 1)])
    if keepdims:
        for axis in sorted(axes):
            result = ops.expand_dims(result, axis + parts)
    return result


@explained
def percentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the percentile: `q` percent of the elements are below it.

    Args:
        x: Numbers.
        q: How many, from 0 to 100; or a vector of such numbers.
        axis: Over which axis or axes; None: all.
        method: As for `quantile`.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.percentile([1.0, 2.0, 4.0], 75).numpy().item()
        3.0
    """
    return quantile(x, _hundredths(q), axis, method, keepdims)


def _hundredths(q: Any) -> Tensor:
    return ops.divide(ops.cast(q, ops.float64), 100.0)


@explained
def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the number in the middle, or the mean of the two there.

    Args:
        x: Numbers.
        axis: Over which axis or axes; None: all.
        keepdims: Whether the axes stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.median([1.0, 2.0, 4.0]).numpy().item()
        2.0
    """
    return quantile(x, 0.5, axis, keepdims=keepdims)


@explained
def nanquantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return quantiles of the elements that are not NaN.

    Args: as for `quantile`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanquantile([1.0, float("nan"), 2.0, 4.0], 0.75).numpy().item()
        3.0
    """
    tensor = _floats(x)
    if method not in _METHODS:
        raise ValueError(f"Invalid method: {method}. Valid methods are {', '.join(_METHODS)}.")
    parts = ops.cast(q, ops.float64)
    rows, axes = _rows(tensor, axis)
    known = ops.reduce_sum(ops.cast(ops.logical_not(ops.is_nan(rows)), ops.float64), -1)
    infinity = ops.constant(np.inf, rows.dtype)
    ordered = ops.sort(ops.where(ops.is_nan(rows), infinity, rows), -1)
    flat = ops.reshape(ordered, [-1, ordered.shape[-1]])
    counts = ops.reshape(known, [-1])
    quantiles = [
        _between(flat[i], parts * ops.maximum(counts[i] - 1.0, 0.0), method)
        for i in range(flat.shape[0])
    ]
    result = ops.reshape(ops.stack(quantiles), [*known.shape, *parts.shape])
    empty = ops.reshape(ops.equal(known, 0.0), [*known.shape, *[1] * parts.ndim])
    result = ops.where(empty, ops.constant(np.nan, result.dtype), result)
    return _in_place(result, tensor, axes, parts.ndim, keepdims)


@explained
def nanpercentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the percentile of the elements that are not NaN.

    Args: as for `percentile`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanpercentile([1.0, float("nan"), 3.0], 50).numpy().item()
        2.0
    """
    return nanquantile(x, _hundredths(q), axis, method, keepdims)


@explained
def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the number in the middle of those that are not NaN.

    Args: as for `median`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmedian([1.0, float("nan"), 3.0]).numpy().item()
        2.0
    """
    return nanquantile(x, 0.5, axis, keepdims=keepdims)
