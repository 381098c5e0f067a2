"""How many values are in each part of a range, and how often two labels come together."""

from operator import index
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import clip_by_value
from mirrored.ops.conversion import adopt, as_tensors, constant
from mirrored.ops.creation import FILL
from mirrored.ops.elementwise import MUL, divide
from mirrored.ops.gathering import flat_indices
from mirrored.ops.index_range import check_index_dtype
from mirrored.ops.joining import stack
from mirrored.ops.rounding import floor
from mirrored.ops.scattering import UNSORTED_SEGMENT_SUM
from mirrored.ops.shaping import RESHAPE, cast, squeeze
from mirrored.ops.spec import (
    SIGNED,
    TensorSpec,
    as_dtype,
    check_dtype,
    check_same_dtype,
    int32,
    int64,
)
from mirrored.ops.tensor import Tensor


@explained
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Return how many values are in each of equally wide parts of a range.

    Those outside count for the first or the last part. The values are looked at, so a recorded
    function has no such op.

    Args:
        values: Numbers, of any shape.
        value_range: Where the range begins and ends, two numbers of the same dtype.
        nbins: How many parts there are.
        dtype: The dtype of the result, int32 or int64.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The range is none, there are no parts, or a value is NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy()
        array([2, 1, 1, 0, 2], dtype=int32)
    """
    op, wanted, count = "HistogramFixedWidth", as_dtype(dtype), index(nbins)
    check_index_dtype(op, TensorSpec((), wanted), "dtype")
    x, limits = as_tensors((adopt(values, None), value_range))
    check_dtype(op, SIGNED, x.spec)
    check_same_dtype(op, x.spec, limits.spec)
    if limits.shape != (2,):
        raise InvalidArgumentError(f"value_range should be a vector of 2 elements. [Op:{op}]")
    array, (low, high) = x.numpy().reshape(-1), limits.numpy()
    if not low < high:
        raise InvalidArgumentError(
            "value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{low}, {high}]' [Op:{op}]"
        )
    if count < 1:
        raise InvalidArgumentError(
            f"nbins should be a positive number, but got '{count}' [Op:{op}]"
        )
    if np.isnan(array).any():
        raise InvalidArgumentError(f"Histogram values must not contain NaN [Op:{op}]")
    width = np.float64(high - low) / count
    steps = (np.maximum(array, low) - low).astype(np.float64) / width
    bins = np.minimum(steps, count - 1).astype(np.int64)
    return constant(np.bincount(bins, minlength=count).astype(wanted))


@explained
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
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
    count = index(nbins)
    if count < 1:
        raise InvalidArgumentError(f"nbins must be > 0. Received: nbins={count}")
    low, high = limits[0], limits[1]
    bins = floor(MUL(divide(x - low, high - low), float(count)))
    check_same_dtype("Mul", x.spec, bins.spec)
    return cast(clip_by_value(bins, 0.0, count - 1.0), int32)


@explained
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = int32,
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
        InvalidArgumentError: A number is negative or no class, or the shapes differ. On a GPU such
            a pair is left out.
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
            "Labels and predictions are vectors. Received: shapes "
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
