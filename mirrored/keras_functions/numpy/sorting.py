"""`keras.ops` that sort and count elements, or depend on their order, such as quantiles."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.keras_functions.promotion import (
    kept_axes,
    promoted_tensors,
    result_type,
    to_floats,
    to_indices,
    to_numbers,
)
from mirrored.ops import Tensor
from mirrored.ops.conversion import known_values
from mirrored.ops.spec import INDICES


def sort(x: TensorLike, axis: int | None = -1) -> Tensor:
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
    values = to_numbers(tensor)
    values = ops.sort(ops.reshape(values, [-1]), 0) if axis is None else ops.sort(values, axis)
    return ops.cast(values, tensor.dtype)


def argsort(x: TensorLike, axis: int | None = -1) -> Tensor:
    """Return the indices of the elements in order along an axis, int32.

    Args:
        x: Numbers.
        axis: The axis; None: that of all elements in a row.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.argsort([3, 1, 2]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    tensor = to_numbers(x)
    return ops.argsort(ops.reshape(tensor, [-1]), 0) if axis is None else ops.argsort(tensor, axis)


def argpartition(x: TensorLike, kth: int, axis: int = -1) -> Tensor:
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


def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left") -> Tensor:
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
    numbers, wanted = promoted_tensors(sorted_sequence, values)
    if numbers.ndim != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={numbers.shape}"
        )
    indices = ops.searchsorted(numbers, ops.reshape(wanted, [-1]), side)
    return ops.reshape(indices, ops.shape(wanted))


def digitize(x: TensorLike, bins: TensorLike) -> Tensor:
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


def _parts(q: Any, method: str) -> Tensor:
    if method not in _METHODS:
        raise ValueError(f"Invalid method: {method}. Valid methods are {', '.join(_METHODS)}.")
    return ops.cast(q, ops.float64)


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


def quantile(
    x: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    method: str = "linear",
    keepdims: bool = False,
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
    tensor, parts = to_floats(x), _parts(q, method)
    if parts.ndim > 1:
        raise ValueError(f"`q` must be a scalar or 1D array. Received shape {parts.shape}.")
    rows, axes = _rows(tensor, axis)
    # The host's numbers of a place are exact where those of float32 are not.
    result = _between(ops.sort(rows, -1), parts * (rows.shape[-1] - 1.0), method)
    unknown = ops.reduce_any(ops.is_nan(rows), -1)
    unknown = ops.expand_dims(unknown, -1) if parts.ndim else unknown
    result = ops.where(unknown, ops.constant(np.nan, result.dtype), result)
    return _in_place(result, tensor, axes, parts.ndim, keepdims)


def _in_place(result: Tensor, x: Tensor, axes: list[int], parts: int, keepdims: bool) -> Tensor:
    """Return quantiles with the axis of parts in front, and reduced axes where they were."""
    if parts:
        result = ops.transpose(result, [result.ndim - 1, *range(result.ndim - 1)])
    return kept_axes(result, [axis + parts for axis in axes], keepdims)


def percentile(
    x: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    method: str = "linear",
    keepdims: bool = False,
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


def median(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
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


def nanquantile(
    x: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles of the elements that are not NaN.

    Args: as for `quantile`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanquantile([1.0, float("nan"), 2.0, 4.0], 0.75).numpy().item()
        3.0
    """
    tensor, parts = to_floats(x), _parts(q, method)
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


def nanpercentile(
    x: TensorLike,
    q: TensorLike,
    axis: AxisLike | None = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return the percentile of the elements that are not NaN.

    Args: as for `percentile`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanpercentile([1.0, float("nan"), 3.0], 50).numpy().item()
        2.0
    """
    return nanquantile(x, _hundredths(q), axis, method, keepdims)


def nanmedian(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the number in the middle of those that are not NaN.

    Args: as for `median`.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.nanmedian([1.0, float("nan"), 3.0]).numpy().item()
        2.0
    """
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def bincount(
    x: TensorLike, weights: TensorLike | None = None, minlength: int = 0, sparse: bool = False
) -> Tensor:
    """Return how often each of 0, 1, 2, ... comes in a vector, or in each row of a matrix.

    Args:
        x: Integers, none of them below 0.
        weights: What an element counts, of the shape of `x`; None: 1.
        minlength: The least length of the result.
        sparse: False: there are no sparse tensors.

    Raises:
        ValueError: A sparse one is asked for.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.bincount([1, 1, 3]).numpy()
        array([0, 2, 0, 1], dtype=int32)
    """
    if sparse:
        raise ValueError("Tensors are not sparse here. Leave `sparse` out.")
    tensor = ops.convert_to_tensor(x)
    kind = ops.int32
    if weights is not None:
        weights = ops.convert_to_tensor(weights)
        kind = result_type(tensor.dtype, weights.dtype)
        if weights.dtype not in INDICES | {ops.float32, ops.float64}:
            weights = ops.cast(weights, ops.int32 if weights.dtype.kind in "iu" else ops.float32)
    return ops.cast(ops.bincount(to_indices(tensor), weights, minlength, axis=-1), kind)


def histogram(
    x: TensorLike, bins: int = 10, range: Sequence[float] | None = None
) -> tuple[Tensor, Tensor]:
    """Return how many elements are in each of some bins of one width, and where these begin.

    Args:
        x: A vector of numbers.
        bins: How many bins.
        range: The least number that is in one, and the largest; None: those of `x`.

    Returns:
        The counts, of the dtype of `x`, and one edge more than there are bins.

    Raises:
        TypeError: `bins` is no integer.
        ValueError: It is not above 0, the range is none, or `x` no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.histogram([1.0, 2.0, 4.0], bins=3)[0].numpy()
        array([1., 1., 1.], dtype=float32)
    """
    if not isinstance(bins, int):
        raise TypeError(f"Argument `bins` must be of type `int`. Received: bins={bins!r}")
    if bins < 1:
        raise ValueError(
            f"Argument `bins` should be a non-negative integer. Received: bins={bins!r}"
        )
    if range is not None and (len(range) != 2 or range[1] < range[0]):
        raise ValueError(f"The second element of `range` must be greater. Received: range={range}")
    tensor = ops.convert_to_tensor(x)
    if tensor.ndim != 1:
        raise ValueError(
            f"Input tensor must be 1-dimensional. Received: input.shape={tensor.shape}"
        )
    if range is None:
        low, high = ops.reduce_min(tensor), ops.reduce_max(tensor)
    else:
        low, high = (ops.cast(bound, tensor.dtype) for bound in range)
    wide = ops.float64 if tensor.dtype.kind in "iu" else tensor.dtype
    edges = ops.linspace(ops.cast(low, wide), ops.cast(high, wide), bins + 1)
    edges = ops.cast(edges, tensor.dtype)
    inside = ops.logical_and(tensor >= low, tensor <= high)
    places = searchsorted(edges[1:-1], tensor, "right")
    counted = ops.unsorted_segment_sum(ops.cast(inside, tensor.dtype), places, bins)
    return counted, edges


def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: TensorLike | None = None,
) -> Any:
    """Return the elements that there are, each once.

    How many those are is known on the host: it is refused in a recorded function.

    Args:
        x: A tensor, an array or nested lists of numbers.
        sorted: Whether they have to be in order, as they always are.
        return_index: Whether to return where each of them is first.
        return_inverse: Whether to return which of them each element is.
        return_counts: Whether to return how often each comes.
        axis: Along which axis slices are compared; None: all elements are.
        size: How many are returned; None: all.
        fill_value: What stands for those that lack; None: 0.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.unique([3, 1, 3]).numpy()
        array([1, 3], dtype=int32)
    """
    tensor = ops.convert_to_tensor(x)
    values = known_values(tensor, "distinct elements", "Compute it outside of the function.")
    parts = list(np.unique(values, True, True, True, axis=axis))
    parts[2] = parts[2].reshape(values.shape if axis is None else (-1,))
    along = 0 if axis is None else axis % values.ndim
    if size is not None:
        fillers = (0 if fill_value is None else fill_value, 1, None, 0)
        for i, filler in enumerate(fillers):
            if filler is not None:
                parts[i] = _of_size(parts[i], size, filler, along if i == 0 else 0)
    wanted = (True, return_index, return_inverse, return_counts)
    results = [
        ops.constant(part.astype(tensor.dtype if i == 0 else np.int32))
        for i, part in enumerate(parts)
        if wanted[i]
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _of_size(values: Any, size: int, filler: Any, axis: int) -> Any:
    kept = values.take(np.arange(min(size, values.shape[axis])), axis)
    lacking = [(0, size - kept.shape[axis] if i == axis else 0) for i in range(values.ndim)]
    return np.pad(kept, lacking, constant_values=filler)


explain_functions(__name__, all_but="")
