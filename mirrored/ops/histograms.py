"""How often integers come, how many values are in each part of a range, and confusion matrices."""

import math
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import clip_by_value
from mirrored.ops.comparison import EQUAL
from mirrored.ops.conversion import adopt, as_tensors, constant
from mirrored.ops.creation import FILL
from mirrored.ops.elementwise import MAXIMUM, MINIMUM, MUL, divide
from mirrored.ops.hooks import active_recorder
from mirrored.ops.indices import check_index_dtype, flat_indices
from mirrored.ops.manipulation import stack
from mirrored.ops.rounding import floor
from mirrored.ops.scattering import UNSORTED_SEGMENT_SUM
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import RESHAPE, cast, squeeze
from mirrored.ops.spec import (
    INDICES,
    INTEGERS,
    WIDE_FLOATS,
    DType,
    TensorSpec,
    as_dtype,
    check_dtype,
    check_same_dtype,
    float64,
    int32,
    int64,
)
from mirrored.ops.tensor import Tensor


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Return how often each of 0, 1, 2, ... comes in a tensor.

    A recorded function wants to know how many those are: `maxlength`, and `minlength` as large.

    Args:
        arr: Int32 or int64, none of them below 0; floats and booleans become int32.
        weights: What an element counts, of the shape of `arr`; None, or nothing: 1.
        minlength: The least length of the result; None: the largest element and one.
        maxlength: The most, beyond which elements are left out.
        dtype: The dtype of the result, where there are no weights, of which it is otherwise.
        name: Accepted for compatibility.
        axis: None or 0 counts all elements, -1 those of each row of a matrix.
        binary_output: Whether only that an element comes counts, however often.

    Raises:
        ValueError: The axis is another one, or there are weights with `binary_output`.
        InvalidArgumentError: An element is negative, the shapes differ, or a row has axes.
        TypeError: A length is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.math.bincount([1, 1, 3]).numpy()
        array([0, 2, 0, 1], dtype=int32)
    """
    _check_options(weights, axis, binary_output)
    x = adopt(arr, None)
    x = x if x.dtype in INTEGERS else cast(x, int32)
    check_dtype("DenseBincount", INDICES, x.spec)
    counted = _weights_of_counts(x, weights, as_dtype(dtype))
    if axis != -1:
        x, counted = RESHAPE(x, shape=(x.size,)), RESHAPE(counted, shape=(x.size,))
    if x.ndim > 2:
        raise InvalidArgumentError(
            f"Shape must be at most rank 2 but is rank {x.ndim} [Op:DenseBincount]"
        )
    sums = _sums_of_counts(x, counted, _length_of_counts(x, minlength, maxlength))
    return clip_by_value(sums, 0, 1) if binary_output else sums


def _check_options(weights: Any, axis: int | None, binary_output: bool) -> None:
    if weights is not None and binary_output:
        raise ValueError(
            "Arguments `binary_output` and `weights` are mutually exclusive. Please specify only "
            "one."
        )
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )


def _weights_of_counts(x: Tensor, weights: Any, dtype: DType) -> Tensor:
    """Return what each element counts."""
    factors = None if weights is None else adopt(weights, None)
    if factors is None or not factors.size:
        factors = FILL(shape=x.shape, value=1, dtype=dtype if factors is None else factors.dtype)
    check_dtype("DenseBincount", INDICES | WIDE_FLOATS, factors.spec)
    if factors.shape != x.shape:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr`. Received: shapes "
            f"{factors.shape} and {x.shape} [Op:DenseBincount]"
        )
    return factors


def _length_of_counts(x: Tensor, minlength: Any, maxlength: Any) -> int:
    least = 0 if minlength is None else index(minlength)
    most = None if maxlength is None else index(maxlength)
    if most is not None and most < 0:
        raise InvalidArgumentError(f"size ({most}) must be non-negative [Op:DenseBincount]")
    _require(x >= 0, "Input arr must be non-negative! [Op:DenseBincount]")
    if most is not None and least >= most:
        return most  # Whatever the values are.
    length = max(least, int(x.numpy().max(initial=-1)) + 1)
    return length if most is None else min(most, length)


def _sums_of_counts(x: Tensor, counted: Tensor, length: int) -> Tensor:
    # With one more place, for what is beyond the others.
    rows, sizes = x.shape[:-1], (length + 1,)
    places = RESHAPE(MINIMUM(x, length), shape=(*x.shape, 1))
    flat = flat_indices(places, sizes, batch=rows, op="DenseBincount")
    count = math.prod((*rows, *sizes))
    sums = UNSORTED_SEGMENT_SUM(RESHAPE(counted, shape=flat.shape), flat, num_segments=count)
    return RESHAPE(sums, shape=(*rows, *sizes))[..., :length]


def _require(held: Tensor, text: str) -> None:
    """Raise unless all of `held` is true; a recorded function is told by the indices it makes."""
    if active_recorder() is None and not held.numpy().all():
        raise InvalidArgumentError(text)


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: SupportsIndex = 100,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """Return how many values are in each of equally wide parts of a range.

    Those outside count for the first or the last part.

    Args:
        values: Numbers, of any shape.
        value_range: Where the range begins and ends, two numbers of the same dtype, which a
            recorded function has to be told.
        nbins: How many parts there are.
        dtype: The dtype of the result, int32 or int64.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The range is none, there are no parts, or a value is NaN. In a
            function recorded for a GPU NaN is left out.

    Example:
        >>> import mirrored as mr
        >>> mr.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy()
        array([2, 1, 1, 0, 2], dtype=int32)
    """
    op, wanted, count = "HistogramFixedWidth", as_dtype(dtype), _number_of_bins(nbins)
    check_index_dtype(op, TensorSpec((), wanted), "dtype")
    x, limits = as_tensors((adopt(values, None), value_range))
    check_dtype(op, INDICES | WIDE_FLOATS, x.spec)
    check_same_dtype(op, x.spec, limits.spec)
    if limits.shape != (2,):
        raise InvalidArgumentError(f"value_range should be a vector of 2 elements. [Op:{op}]")
    low, high = limits.numpy()
    if not low < high:
        raise InvalidArgumentError(
            "value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{low}, {high}]' [Op:{op}]"
        )
    if count < 1:
        raise InvalidArgumentError(
            f"nbins should be a positive number, but got '{count}' [Op:{op}]"
        )
    # In double precision, and the step as this difference, as TensorFlow has it.
    begin, step = float(low), float(high) / count - float(low) / count
    steps = (MAXIMUM(cast(x, float64), begin) - begin) / step
    known = EQUAL(steps, steps)
    _require(known, f"Histogram values must not contain NaN [Op:{op}]")
    parts = cast(SELECT(known, MINIMUM(steps, count - 1.0), constant(-1.0, float64)), int64)
    places = flat_indices(RESHAPE(parts, shape=(x.size, 1)), (count,), op=op)
    ones = FILL(shape=(x.size,), value=1, dtype=wanted)
    return UNSORTED_SEGMENT_SUM(ones, places, num_segments=count)


def _number_of_bins(nbins: Any) -> int:
    count = index(nbins)
    if count > np.iinfo(int32).max:
        raise InvalidArgumentError(
            f"The numbers of bins must be int32. Received: nbins={count}. Ask for fewer bins."
        )
    return count


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: SupportsIndex = 100,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """Return in which of equally wide parts of a range each value is, as int32.

    Those outside are in the first or the last part.

    Args:
        values: Floats, of any shape.
        value_range: Where the range begins and ends, two numbers of the same dtype.
        nbins: How many parts there are.
        dtype: Accepted for compatibility; TensorFlow does not use it either.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There are no parts, or the values are no floats.

    Example:
        >>> import mirrored as mr
        >>> mr.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 5.0], [0.0, 5.0], nbins=5).numpy()
        array([0, 0, 1, 4], dtype=int32)
    """
    x, limits = adopt(values, None), adopt(value_range, None)
    count = _number_of_bins(nbins)
    if count < 1:
        raise InvalidArgumentError(f"nbins must be > 0. Received: nbins={count}")
    low, high = limits[0], limits[1]
    bins = floor(MUL(divide(x - low, high - low), float(count)))
    check_same_dtype("Mul", x.spec, bins.spec)
    return cast(clip_by_value(bins, 0.0, count - 1.0), int32)


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: SupportsIndex | None = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """Return how often each class was taken for each one.

    Args:
        labels: The classes, numbers from 0 of shape (n,), or (n, 1) beside predictions of (n,).
        predictions: What they were taken for, likewise.
        num_classes: How many classes there are; None: as many as the numbers make it. A recorded
            function has to be told.
        weights: What each pair counts, of shape (n,); None: 1.
        dtype: The dtype of the result, which weights are cast to.
        name: Accepted for compatibility.

    Returns:
        Shape (classes, classes): a row for each label, a column for each prediction.

    Raises:
        InvalidArgumentError: A number is negative or no class, or the shapes differ. A function
            recorded for a GPU leaves such a pair out.
        ValueError: The weights are of another shape.

    Example:
        >>> import mirrored as mr
        >>> mr.math.confusion_matrix([0, 1, 1], [0, 0, 1]).numpy()
        array([[1, 0],
               [1, 1]], dtype=int32)
    """
    pairs = _pairs(adopt(labels, None), adopt(predictions, None))
    wanted = as_dtype(dtype)
    count = _classes(pairs) if num_classes is None else index(num_classes)
    for number, source in enumerate(("labels", "predictions")):
        _require(pairs[:, number] >= 0, f"`{source}` contains negative values.")
        _require(pairs[:, number] < count, f"`{source}` out of bound: there are {count} classes.")
    if weights is None:
        counted = FILL(shape=pairs.shape[:1], value=1, dtype=wanted)
    else:
        counted = cast(adopt(weights, None), wanted)
    if counted.shape != pairs.shape[:1]:
        raise ValueError(f"Shapes {pairs.shape[:1]} and {counted.shape} are incompatible")
    places = flat_indices(pairs, (count, count), op="confusion_matrix")
    sums = UNSORTED_SEGMENT_SUM(counted, places, num_segments=count * count)
    return RESHAPE(sums, shape=(count, count))


def _pairs(labels: Tensor, predictions: Tensor) -> Tensor:
    """Return labels and predictions side by side, as int64."""
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = squeeze(labels, -1)
    if predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = squeeze(predictions, -1)
    if labels.ndim != 1:
        raise InvalidArgumentError(
            "Labels and predictions must be vectors. Received: shapes "
            f"{labels.shape} and {predictions.shape} [Op:confusion_matrix]"
        )
    return stack([cast(labels, int64), cast(predictions, int64)], axis=1)


def _classes(pairs: Tensor) -> int:
    if not pairs.size:
        raise InvalidArgumentError(
            "Of no labels nobody can tell how many classes there are. Give `num_classes`. "
            "[Op:confusion_matrix]"
        )
    return max(int(np.max(pairs.numpy())) + 1, 0)


explain_functions(__name__)
