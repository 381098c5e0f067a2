"""`keras.ops` of Keras' own maths: segments, largest elements, distances and error functions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.keras_functions.promotion import RULES, promoted_floats, to_indices
from mirrored.numpy_functions.rows import Rows
from mirrored.ops import Tensor
from mirrored.ops.conversion import known_values

_ROWS = Rows(__name__, RULES)
unary = _ROWS.unary

rsqrt = unary(ops.rsqrt, "1 over the square roots", "4.0 -> 0.5", "same")
erf = unary(ops.erf, "the error function of each element", "0 -> 0.0")
erfc = unary(ops.erfc, "1 less the error function of each element", "0 -> 1.0")
erfinv = unary(ops.erfinv, "what `erf` gives the elements of", "0 -> 0.0")


def _segments(
    name: str, data: Any, segment_ids: Any, num_segments: int | None, is_sorted: bool
) -> Tensor:
    of_any: Callable[..., Tensor] = getattr(ops, f"unsorted_{name}")
    of_sorted: Callable[..., Tensor] = getattr(ops, name)
    rows, numbers = ops.convert_to_tensor(data), ops.convert_to_tensor(segment_ids)
    if numbers.ndim != 1:
        raise ValueError(
            f"Argument `segment_ids` should be an 1-D vector, got shape: {numbers.shape}. Consider "
            "either flatten input with segment_ids.reshape((-1)) and data.reshape((-1, ) + "
            "data.shape[len(segment_ids.shape):]) or vectorize with vmap."
        )
    if is_sorted and num_segments is None:
        return of_sorted(rows, numbers)
    if num_segments is None:
        ids = known_values(numbers, "segments", "Give `num_segments`.")
        num_segments = int(ids.max(initial=-1)) + 1
        if name == "segment_sum":  # TensorFlow's Keras counts the numbers that come.
            num_segments = max(num_segments, len(np.unique(ids)))
    return of_any(rows, numbers, num_segments)


def segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Return the sum of each group of rows.

    Args:
        data: The rows.
        segment_ids: The number of the group that each row is in, a vector.
        num_segments: How many groups there are; None: as many as the largest number says, which
            a recorded function does not know.
        sorted: Whether the numbers are in order, which makes nothing faster here.

    Raises:
        ValueError: The numbers are no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.segment_sum([1, 2, 3], [0, 1, 0]).numpy()
        array([4, 2], dtype=int32)
    """
    return _segments("segment_sum", data, segment_ids, num_segments, sorted)


def segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Return the largest one of each group of rows.

    Args:
        data: The rows.
        segment_ids: The number of the group that each row is in, a vector.
        num_segments: How many groups there are; None: as many as the largest number says, which
            a recorded function does not know.
        sorted: Whether the numbers are in order, which makes nothing faster here.

    Raises:
        ValueError: The numbers are no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.segment_max([1, 2, 3], [0, 1, 0]).numpy()
        array([3, 2], dtype=int32)
    """
    return _segments("segment_max", data, segment_ids, num_segments, sorted)


def segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Return the least one of each group of rows.

    Args:
        data: The rows.
        segment_ids: The number of the group that each row is in, a vector.
        num_segments: How many groups there are; None: as many as the largest number says, which
            a recorded function does not know.
        sorted: Whether the numbers are in order, which makes nothing faster here.

    Raises:
        ValueError: The numbers are no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.segment_min([1, 2, 3], [0, 1, 0]).numpy()
        array([1, 2], dtype=int32)
    """
    return _segments("segment_min", data, segment_ids, num_segments, sorted)


def segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """Return the product of each group of rows.

    Args:
        data: The rows.
        segment_ids: The number of the group that each row is in, a vector.
        num_segments: How many groups there are; None: as many as the largest number says, which
            a recorded function does not know.
        sorted: Whether the numbers are in order, which makes nothing faster here.

    Raises:
        ValueError: The numbers are no vector.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.segment_prod([1, 2, 3], [0, 1, 0]).numpy()
        array([3, 2], dtype=int32)
    """
    return _segments("segment_prod", data, segment_ids, num_segments, sorted)


def top_k(x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
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


def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
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
    return ops.in_top_k(to_indices(targets), predictions, k)


def logsumexp(x: TensorLike, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis or axes; None: all.
        keepdims: Whether they stay, of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.logsumexp([0.0]).numpy().item()
        0.0
    """
    return ops.reduce_logsumexp(x, axis, keepdims)


def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the distance of each vector of one value from each of another one.

    Args:
        x: Vectors, of shape (..., m, size).
        y: Others, of shape (..., n, size).

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0]]).numpy()
        array([[5.]], dtype=float32)
    """
    first, second = promoted_floats(x, y)
    apart = ops.expand_dims(first, -2) - ops.expand_dims(second, -3)
    squares = ops.reduce_sum(ops.square(apart), axis=-1)
    return ops.sqrt(ops.maximum(squares, ops.zeros_like(squares)))


def extract_sequences(x: TensorLike, sequence_length: int, sequence_stride: int) -> Tensor:
    """Return stretches of the last axis, each a step behind the one before.

    Args:
        x: A tensor or an array.
        sequence_length: How long a stretch is.
        sequence_stride: How far one begins behind the one before.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.extract_sequences([1.0, 2.0, 3.0], 2, 1).numpy()
        array([[1., 2.],
               [2., 3.]], dtype=float32)
    """
    tensor = ops.convert_to_tensor(x)
    count = math.floor((tensor.shape[-1] - sequence_length) / sequence_stride) + 1
    starts = ops.reshape(ops.range(max(count, 0)) * sequence_stride, (-1, 1))
    return ops.gather(tensor, starts + ops.range(sequence_length), axis=-1)


_ROWS.name_all()
explain_functions(__name__, all_but="rsqrt")
