"""`keras.ops` that count elements, and segment reductions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import result_type as _result_type
from mirrored.keras_functions.sorting import searchsorted
from mirrored.ops import Tensor
from mirrored.ops.known_values import known_values
from mirrored.ops.spec import INDICES


@explained
def count_nonzero(x: Any, axis: Any = None) -> Tensor:
    """Return how many elements are not 0, int32.

    Args:
        x: A tensor, an array or nested lists of numbers.
        axis: Over which axis or axes; None: all.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.count_nonzero([1, 0, 2]).numpy().item()
        2
    """
    return ops.count_nonzero(x, axis, dtype=ops.int32)


@explained
def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Tensor:
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
        kind = _result_type(tensor.dtype, weights.dtype)
        if weights.dtype not in INDICES | {ops.float32, ops.float64}:
            weights = ops.cast(weights, ops.int32 if weights.dtype.kind in "iu" else ops.float32)
    if tensor.dtype not in INDICES:
        tensor = ops.cast(tensor, ops.int64)
    return ops.cast(ops.bincount(tensor, weights, minlength, axis=-1), kind)


@explained
def histogram(x: Any, bins: int = 10, range: Any = None) -> tuple[Tensor, Tensor]:
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


@explained
def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
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


def _define_segments(name: str, summary: str, example: str) -> Callable[..., Tensor]:
    of_any, of_sorted = getattr(ops, f"unsorted_{name}"), getattr(ops, name)

    def f(
        data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
    ) -> Tensor:
        rows, numbers = ops.convert_to_tensor(data), ops.convert_to_tensor(segment_ids)
        if numbers.ndim != 1:
            raise ValueError(
                "Argument `segment_ids` should be an 1-D vector, got shape: "
                f"{numbers.shape}. Consider either flatten input with segment_ids.reshape((-1)) "
                "and data.reshape((-1, ) + data.shape[len(segment_ids.shape):]) or vectorize with "
                "vmap."
            )
        if sorted and num_segments is None:
            return of_sorted(rows, numbers)  # type: ignore[no-any-return]
        if num_segments is None:
            said = "Give `num_segments`."
            ids = known_values(numbers, "segments", said)
            # TensorFlow's Keras counts the numbers that come where it adds up.
            counted = name == "segment_sum"
            num_segments = len(np.unique(ids)) if counted else int(ids.max(initial=-1)) + 1
            if counted and ids.size and int(ids.max()) >= num_segments:
                num_segments = int(ids.max()) + 1
        return of_any(rows, numbers, num_segments)  # type: ignore[no-any-return]

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {summary} of each group of rows.

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
        >>> mr.keras.ops.{name}([1, 2, 3], [0, 1, 0]).numpy()
        {example}
    """
    return explained(f)


segment_sum = _define_segments("segment_sum", "sum", "array([4, 2], dtype=int32)")
segment_max = _define_segments("segment_max", "largest one", "array([3, 2], dtype=int32)")
segment_min = _define_segments("segment_min", "least one", "array([1, 2], dtype=int32)")
segment_prod = _define_segments("segment_prod", "product", "array([3, 2], dtype=int32)")
