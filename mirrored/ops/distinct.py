"""The distinct values of a vector, and the permutation that undoes another one.

How many they are, and whether it is one, only the values tell: both are computed on the host when
they are called, and a recorded function has no such ops.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant
from mirrored.ops.index_range import check_index_dtype
from mirrored.ops.shaping import cast
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    TensorSpec,
    as_dtype,
    check_dtype,
    int32,
    is_bfloat16,
)
from mirrored.ops.tensor import Tensor

Array = NDArray[Any]


class Unique(NamedTuple):
    """What `unique` returns.

    Attributes:
        y: The distinct elements, in the order in which they first come.
        idx: For each element which of these it is.
    """

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `unique_with_counts` returns.

    Attributes:
        y: The distinct elements, in the order in which they first come.
        idx: For each element which of these it is.
        count: How often each of these comes.
    """

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # Tuples have a method of this name.


@explained
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """Return the distinct elements of a vector, and which of them each element is.

    Both zeros are one value, and each NaN is another one. No gradient flows through it.

    Args:
        x: A tensor of rank 1.
        out_idx: The dtype of the numbers, int32 or int64.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It is not of rank 1.

    Example:
        >>> import mirrored as mr
        >>> y, idx = mr.unique([4, 1, 4])
        >>> y.numpy(), idx.numpy()
        (array([4, 1], dtype=int32), array([0, 1, 0], dtype=int32))
    """
    y, idx, _ = _distinct("Unique", x, out_idx)
    return Unique(y, idx)


@explained
def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """Return the distinct elements of a vector, which each element is, and how often each comes.

    Args and errors: as for `unique`.

    Example:
        >>> import mirrored as mr
        >>> mr.unique_with_counts([4, 1, 4]).count.numpy()
        array([2, 1], dtype=int32)
    """
    return UniqueWithCounts(*_distinct("UniqueWithCounts", x, out_idx))


def _distinct(op_name: str, x: Any, out_idx: Any) -> tuple[Tensor, Tensor, Tensor]:
    dtype = as_dtype(out_idx)
    check_index_dtype(op_name, TensorSpec((), dtype), "out_idx")
    values = adopt(x, None).numpy()
    if values.ndim != 1:
        raise InvalidArgumentError(f"unique expects a 1D vector. [Op:{op_name}]")
    wide = values.astype(np.float32) if is_bfloat16(values.dtype) else values
    _, first, which, counts = np.unique(wide, True, True, True, equal_nan=False)
    order = np.argsort(first)  # From that of the values to that in which they come.
    places = np.argsort(order)
    return (
        constant(values[first[order]]),
        constant(places[which].astype(dtype)),
        constant(counts[order].astype(dtype)),
    )


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Return the permutation that undoes another one: where in it 0, 1, 2, ... are.

    Args:
        x: Int32 or int64 of shape (n,), each number from 0 to n - 1 once. What is no tensor yet
            becomes int32.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It is no permutation, or not of rank 1.

    Example:
        >>> import mirrored as mr
        >>> mr.math.invert_permutation([2, 0, 1]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    tensor = adopt(x, int32)  # NumPy's integers too, as in TensorFlow.
    if not tensor.size and tensor.dtype in FLOATS:  # As an empty list is.
        tensor = cast(tensor, int32)
    check_dtype("InvertPermutation", INDICES, tensor.spec)
    values = tensor.numpy()
    if values.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector. [Op:InvertPermutation]")
    for value in values[(values < 0) | (values >= values.size)]:
        raise InvalidArgumentError(
            f"{value} is not between 0 and {values.size} [Op:InvertPermutation]"
        )
    for value in np.flatnonzero(np.bincount(values.astype(np.int64)) > 1):
        raise InvalidArgumentError(f"{value} is duplicated in the input. [Op:InvertPermutation]")
    return constant(np.argsort(values).astype(values.dtype))
