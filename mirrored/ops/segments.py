"""Sums, means, products and extremes of rows that have one number, in any order or sorted by it."""

from typing import Any, SupportsIndex

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant, known_values
from mirrored.ops.creation import FILL
from mirrored.ops.elementwise import ABS, MAXIMUM, SIGN
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.op import Op
from mirrored.ops.powers import SQRT
from mirrored.ops.rounding import FLOORDIV
from mirrored.ops.scattering import (
    UNSORTED_SEGMENT_MAX,
    UNSORTED_SEGMENT_MIN,
    UNSORTED_SEGMENT_PROD,
    UNSORTED_SEGMENT_SUM,
)
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import (
    FLOATS,
    NUMBERS,
    SIGNED,
    bounds,
    check_dtype,
    int64,
    number_limits,
    shape_text,
)
from mirrored.ops.tensor import Tensor


def _unsorted(op: Op, data: Any, segment_ids: Any, num_segments: Any) -> tuple[Tensor, Tensor, int]:
    values, ids, count = (adopt(argument, None) for argument in (data, segment_ids, num_segments))
    check_dtype(op.name, NUMBERS, values.spec)
    check_index_dtype(op.name, ids.spec)
    check_index_dtype(op.name, count.spec, "Tnumsegments")
    if count.ndim:
        raise InvalidArgumentError(
            f"num_segments should be a scalar, not shape {shape_text(count.shape)} [Op:{op.name}]"
        )
    if int(count) < 0:
        raise InvalidArgumentError(
            f"Input num_segments == {int(count)} must not be negative. [Op:{op.name}]"
        )
    return values, ids, int(count)


def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return sums of rows, each of the rows that have its number.

    Args:
        data: The rows: slices behind the axes of `segment_ids`.
        segment_ids: Int32 or int64, for each row the number of its sum; below 0: of none.
        num_segments: How many sums there are. One without rows is 0.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or there is no such sum. On a GPU its row
            is left out.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_sum([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 3).numpy()
        array([[3, 4],
               [6, 8],
               [0, 0]], dtype=int32)
    """
    values, ids, count = _unsorted(UNSORTED_SEGMENT_SUM, data, segment_ids, num_segments)
    return UNSORTED_SEGMENT_SUM(values, ids, num_segments=count)


def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return products of rows as `unsorted_segment_sum` does sums; one without rows is 1.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_prod([2, 3, 5], [1, 0, 1], 3).numpy()
        array([ 3, 10,  1], dtype=int32)
    """
    values, ids, count = _unsorted(UNSORTED_SEGMENT_PROD, data, segment_ids, num_segments)
    return UNSORTED_SEGMENT_PROD(values, ids, num_segments=count)


def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return maxima of rows as `unsorted_segment_sum` does sums.

    One without rows is the least number of the dtype. A NaN is forgotten at the next row, as in
    TensorFlow. Rows that are the maximum share its gradient.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_max([2, 3, 5], [1, 0, 1], 2).numpy()
        array([3, 5], dtype=int32)
    """
    values, ids, count = _unsorted(UNSORTED_SEGMENT_MAX, data, segment_ids, num_segments)
    least, _ = number_limits(values.dtype)
    return UNSORTED_SEGMENT_MAX(values, ids, num_segments=count, initial=least)


def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return minima of rows as `unsorted_segment_max` does maxima.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_min([2, 3, 5], [1, 0, 1], 2).numpy()
        array([3, 2], dtype=int32)
    """
    values, ids, count = _unsorted(UNSORTED_SEGMENT_MIN, data, segment_ids, num_segments)
    _, largest = number_limits(values.dtype)
    return UNSORTED_SEGMENT_MIN(values, ids, num_segments=count, initial=largest)


def _sums_and_sizes(data: Any, segment_ids: Any, num_segments: Any) -> tuple[Tensor, Tensor]:
    """Return sums, and how many rows each has, at least 1, in the dtype of the sums."""
    values, ids, count = _unsorted(UNSORTED_SEGMENT_SUM, data, segment_ids, num_segments)
    sums = UNSORTED_SEGMENT_SUM(values, ids, num_segments=count)
    ones = FILL(shape=ids.shape, value=1, dtype=values.dtype)
    sizes = UNSORTED_SEGMENT_SUM(ones, ids, num_segments=count)
    return sums, MAXIMUM(RESHAPE(sizes, shape=(count, *[1] * (sums.ndim - 1))), 1)


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return means of rows as `unsorted_segment_sum` does sums; those of integers are floats.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_mean([2.0, 3.0, 5.0], [1, 0, 1], 3).numpy()
        array([3. , 3.5, 0. ], dtype=float32)
    """
    sums, sizes = _sums_and_sizes(data, segment_ids, num_segments)
    return sums / sizes


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex, name: str | None = None
) -> Tensor:
    """Return sums as `unsorted_segment_sum` does, over the root of the number of their rows.

    Example:
        >>> import mirrored as mr
        >>> mr.math.unsorted_segment_sqrt_n([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], 1).numpy()
        array([5.], dtype=float32)
    """
    sums, sizes = _sums_and_sizes(data, segment_ids, num_segments)
    return sums / SQRT(sizes)


# ---------------------------------------------------------------------------- sorted ones


def _sorted(name: str, data: Any, segment_ids: Any) -> tuple[Tensor, Tensor, int, Any]:
    """Return rows and their numbers, how many segments they are, and how many rows each has."""
    values, ids = adopt(data, None), adopt(segment_ids, None)
    check_dtype(name, NUMBERS, values.spec)
    check_index_dtype(name, ids.spec)
    if not values.ndim:
        raise InvalidArgumentError(f"input must be at least rank 1 [Op:{name}]")
    if ids.ndim != 1:
        raise InvalidArgumentError(f"segment_ids should be a vector. [Op:{name}]")
    if ids.size != len(values):
        raise InvalidArgumentError(
            f"segment_ids should be the same size as dimension 0 of input. [Op:{name}]"
        )
    unsorted = f"math.unsorted_segment_{name.removeprefix('Segment').lower()}"
    numbers = known_values(ids, "segments", f"Use `{unsorted}`, which is told how many.")
    count = int(numbers[-1]) + 1 if numbers.size else 0
    if (np.diff(numbers) < 0).any():
        raise InvalidArgumentError(f"segment ids are not increasing [Op:{name}]")
    if numbers.size and numbers[0] < 0:
        raise InvalidArgumentError(
            f"Segment id {numbers[0]} out of range [0, {count}), possibly because 'segment_ids' "
            f"input is not sorted. [Op:{name}]"
        )
    sizes = np.bincount(numbers, minlength=count).reshape(-1, *[1] * (values.ndim - 1))
    return values, ids, count, sizes


def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Return sums of rows of one number, which are next to each other.

    How many sums there are, the last number says; so in a recorded function it has to be known when
    that is recorded, and `unsorted_segment_sum` is for others.

    Args:
        data: The rows.
        segment_ids: Int32 or int64, for each row the number of its sum, in order. A sum without
            rows is 0.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or numbers are negative or not in order.

    Example:
        >>> import mirrored as mr
        >>> mr.math.segment_sum([[1, 2], [3, 4], [5, 6]], [0, 0, 1]).numpy()
        array([[4, 6],
               [5, 6]], dtype=int32)
    """
    values, ids, count, _ = _sorted("SegmentSum", data, segment_ids)
    return UNSORTED_SEGMENT_SUM(values, ids, num_segments=count)


def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Return products of rows as `segment_sum` does sums; one without rows is 1.

    Example:
        >>> import mirrored as mr
        >>> mr.math.segment_prod([2, 3, 5], [0, 0, 2]).numpy()
        array([6, 1, 5], dtype=int32)
    """
    values, ids, count, _ = _sorted("SegmentProd", data, segment_ids)
    return UNSORTED_SEGMENT_PROD(values, ids, num_segments=count)


def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Return means of rows as `segment_sum` does sums; of integers without the fraction.

    Example:
        >>> import mirrored as mr
        >>> mr.math.segment_mean([2.0, 3.0, 5.0], [0, 0, 2]).numpy()
        array([2.5, 0. , 5. ], dtype=float32)
    """
    values, ids, count, sizes = _sorted("SegmentMean", data, segment_ids)
    sums = UNSORTED_SEGMENT_SUM(values, ids, num_segments=count)
    divisors = cast(constant(np.maximum(sizes, 1)), values.dtype)
    if values.dtype in FLOATS:
        return sums / divisors
    if values.dtype not in SIGNED:
        return FLOORDIV(sums, divisors)
    wide = cast(sums, int64)  # Of the least number of a dtype it has no size.
    return cast(FLOORDIV(ABS(wide), cast(divisors, int64)) * SIGN(wide), values.dtype)


def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Return maxima of rows as `segment_sum` does sums; one without rows is 0.

    A NaN is forgotten at the next row, as in TensorFlow. Rows that are the maximum share its
    gradient.

    Example:
        >>> import mirrored as mr
        >>> mr.math.segment_max([2, 3, 5], [0, 0, 2]).numpy()
        array([3, 0, 5], dtype=int32)
    """
    values, ids, count, sizes = _sorted("SegmentMax", data, segment_ids)
    least, _ = bounds(values.dtype)
    maxima = UNSORTED_SEGMENT_MAX(values, ids, num_segments=count, initial=least)
    return SELECT(constant(sizes > 0), maxima, constant(0, values.dtype))


def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
    """Return minima of rows as `segment_max` does maxima.

    Example:
        >>> import mirrored as mr
        >>> mr.math.segment_min([2, 3, 5], [0, 0, 2]).numpy()
        array([2, 0, 5], dtype=int32)
    """
    values, ids, count, sizes = _sorted("SegmentMin", data, segment_ids)
    _, largest = bounds(values.dtype)
    minima = UNSORTED_SEGMENT_MIN(values, ids, num_segments=count, initial=largest)
    return SELECT(constant(sizes > 0), minima, constant(0, values.dtype))


explain_functions(__name__, all_but="")
