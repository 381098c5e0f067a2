"""Where values belong in sorted rows, the distinct values of a vector, and inverse permutations.

Each step of a search halves what is left to look at, for all values at once.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant
from mirrored.ops.creation import count_up_into
from mirrored.ops.indices import check_index_dtype
from mirrored.ops.op import Op, define_op
from mirrored.ops.shaping import RESHAPE, cast
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    NUMBERS,
    DType,
    TensorSpec,
    as_dtype,
    bool_,
    check_dtype,
    check_same_dtype,
    int32,
    int64,
    is_bfloat16,
)
from mirrored.ops.tensor import Tensor


def _define_bound(name: str, *, right: bool) -> Op:
    """Define an op that counts the elements of a row before each value, or up to it."""

    def infer(rows: TensorSpec, values: TensorSpec, *, output_type: DType) -> TensorSpec:
        check_same_dtype(name, rows, values)
        if rows.shape[:1] != values.shape[:1]:
            raise InvalidArgumentError(
                f"Leading dim_size of both tensors must match. Received: rows of shape "
                f"{rows.shape} and values of shape {values.shape} [Op:{name}]"
            )
        return TensorSpec(values.shape, output_type)

    return define_op(
        name=name,
        infer=infer,
        kernel=partial(_bound, right=right),
        dtypes=NUMBERS,
        workspace=_workspace,
    )


def _workspace(rows: TensorSpec, values: TensorSpec, **_: Any) -> tuple[TensorSpec, ...]:
    places, mask = TensorSpec(values.shape, int64), TensorSpec(values.shape, bool_)
    starts = TensorSpec((values.shape[0], 1), int64)
    return (starts, places, places, places, places, values, mask, mask)


def _bound(
    xp: Any, out: Any, rows: Any, values: Any, *, workspace: Any, right: bool, **__: Any
) -> None:
    if not out.size:
        return
    starts, first, count, middle, step, probes, before, more = workspace
    length = rows.shape[1]
    count_up_into(xp, starts)
    xp.multiply(starts, length, out=starts)
    xp.copyto(first, 0)
    xp.copyto(count, length)
    # Each round leaves half of the `count` elements from `first` on, with the value's place.
    for _ in range(length.bit_length()):
        xp.right_shift(count, 1, out=step)
        xp.add(first, step, out=middle)
        xp.add(middle, starts, out=middle)
        xp.take(rows.reshape(-1), middle, out=probes, mode="clip")
        if right:
            xp.less(values, probes, out=before)
            xp.logical_not(before, out=before)
        else:
            xp.less(probes, values, out=before)
        xp.greater(count, 0, out=more)
        xp.logical_and(before, more, out=before)
        is_before = middle
        xp.copyto(is_before, before)
        # There what is left is behind the middle one: count - step - 1. Elsewhere it is `step`.
        xp.subtract(count, step, out=count)
        xp.subtract(count, step, out=count)
        xp.subtract(count, is_before, out=count)
        xp.multiply(count, is_before, out=count)
        xp.add(count, step, out=count)
        xp.add(step, 1, out=step)
        xp.multiply(step, is_before, out=step)
        xp.add(first, step, out=first)
    xp.copyto(out, first)


LOWER_BOUND = _define_bound("LowerBound", right=False)
UPPER_BOUND = _define_bound("UpperBound", right=True)


# ---------------------------------------------------------------------------- public functions


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """Return before which element of a row that is in order each value belongs.

    Args:
        sorted_sequence: The rows: numbers in ascending order along the last axis.
        values: What to look for, of the same dtype and the same axes but for the last.
        side: "left" finds the first place where a value keeps the order, "right" the last one.
        out_type: The dtype of the result, int32 or int64.
        name: Accepted for compatibility.

    Returns:
        Numbers from 0 to the length of a row, of the shape of `values`.

    Raises:
        ValueError: `side` is neither.
        InvalidArgumentError: Dtypes or the leading axes differ, or one of both is a scalar.

    Example:
        >>> import mirrored as mr
        >>> mr.searchsorted([1, 3, 5], [0, 3, 4, 9]).numpy()
        array([0, 1, 2, 3], dtype=int32)
        >>> mr.searchsorted([1, 3, 5], [0, 3, 4, 9], side="right").numpy()
        array([0, 2, 2, 3], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(
            f"Argument `side` must be either 'right' or 'left'. Received: `side` = {side!r}."
        )
    op, dtype = UPPER_BOUND if side == "right" else LOWER_BOUND, as_dtype(out_type)
    rows, wanted = adopt(sorted_sequence, None), adopt(values, None)
    check_index_dtype(op.name, TensorSpec((), dtype), "out_type")
    for tensor in (rows, wanted):
        if not tensor.ndim:
            raise InvalidArgumentError(
                f"searchsorted takes tensors of rank 1 or more. Received: a scalar [Op:{op.name}]"
            )
    flat, places = (
        RESHAPE(x, shape=(math.prod(x.shape[:-1]), x.shape[-1])) for x in (rows, wanted)
    )
    return RESHAPE(op(flat, places, output_type=dtype), shape=wanted.shape)


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


def unique(x: TensorLike, out_idx: DTypeLike = int32, name: str | None = None) -> Unique:
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


def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = int32, name: str | None = None
) -> UniqueWithCounts:
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


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
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


explain_functions(__name__)
