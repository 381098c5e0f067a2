"""Ops that reduce axes: sums, means, maxima and the places of maxima.

On the host they run in NumPy's fixed order, so two runs give the same bits.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.dispatch import adopt
from mirrored.ops.registry import Op, OpCall, register
from mirrored.ops.shaping import BROADCAST_TO, CAST, RESHAPE, normalize_axis
from mirrored.ops.spec import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    DType,
    Shape,
    TensorSpec,
    as_dtype,
    as_integers,
    int64,
)
from mirrored.ops.tensor import Tensor

Axes = tuple[int, ...]


def _reduced_shape(shape: Shape, axis: Axes, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if i in axis else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axis)


def _infer(x: TensorSpec, *, axis: Axes, keepdims: bool) -> TensorSpec:
    return TensorSpec(_reduced_shape(x.shape, axis, keepdims), x.dtype)


def _sum(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
    xp.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims, out=out)


def _mean(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
    if out.size == x.size:  # Each is the mean of itself alone.
        xp.copyto(out, x.reshape(out.shape))
        return
    xp.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims, out=out)
    count = math.prod(x.shape[i] for i in axis)
    if x.dtype in INTEGERS:
        xp.divide(out, count, out=out, casting="unsafe")  # Rounds towards zero.
    else:
        xp.divide(out, count, out=out)


def _max(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
    if x.size:
        xp.max(x, axis=axis, keepdims=keepdims, out=out)
    else:  # NumPy has no maximum of nothing; TensorFlow has the least value there is.
        xp.copyto(out, -np.inf if x.dtype in FLOATS else np.iinfo(x.dtype).min)


def _spread(call: OpCall, g: Tensor) -> Tensor:
    """Bring a gradient of the reduced shape back to the input's shape."""
    shape = call.inputs[0].shape
    kept = RESHAPE(g, shape=_reduced_shape(shape, call.attrs["axis"], True))
    return BROADCAST_TO(kept, shape=shape)


def _grad_sum(call: OpCall, g: Tensor) -> Sequence[Tensor | None]:
    return [_spread(call, g)]


def _grad_mean(call: OpCall, g: Tensor) -> Sequence[Tensor | None]:
    shape = call.inputs[0].shape
    count = math.prod(shape[i] for i in call.attrs["axis"])
    return [_spread(call, g / float(count))]


def _grad_max(call: OpCall, g: Tensor) -> Sequence[Tensor | None]:
    # Where several elements are the largest they share the gradient, as in TensorFlow.
    x, attrs = call.inputs[0], call.attrs
    chosen = CAST(x == _spread(call, call.output), dtype=g.dtype)
    shares = SUM(chosen, axis=attrs["axis"], keepdims=attrs["keepdims"])
    return [chosen * _spread(call, g / shares)]


SUM = register(Op(name="Sum", infer=_infer, kernel=_sum, gradient=_grad_sum, dtypes=NUMBERS))
MEAN = register(Op(name="Mean", infer=_infer, kernel=_mean, gradient=_grad_mean, dtypes=NUMBERS))
MAX = register(Op(name="Max", infer=_infer, kernel=_max, gradient=_grad_max, dtypes=NUMBERS))


def _infer_argmax(x: TensorSpec, *, axis: int, output_type: DType) -> TensorSpec:
    if x.shape[axis] == 0:
        raise InvalidArgumentError(f"Reduction axis {axis} is empty in shape {x.shape} [Op:ArgMax]")
    return TensorSpec(_reduced_shape(x.shape, (axis,), False), output_type)


def _argmax_workspace(x: TensorSpec, *, axis: int, output_type: DType) -> tuple[TensorSpec, ...]:
    moved = (*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis])
    # NumPy copies the input where the axis is not the last, so that copy is declared and made here.
    copy = () if axis == len(x.shape) - 1 else (TensorSpec(moved, x.dtype),)
    return (TensorSpec(moved[:-1], int64), *copy)


def _argmax(
    xp: Any, out: Any, x: Any, *, axis: int, output_type: DType, workspace: tuple[Any, ...]
) -> None:
    places, *copy = workspace
    if copy:
        xp.copyto(copy[0], xp.moveaxis(x, axis, -1))
        x = copy[0]
    xp.argmax(x, axis=-1, out=places)
    xp.copyto(out, places, casting="same_kind")


ARGMAX = register(
    Op(
        name="ArgMax",
        infer=_infer_argmax,
        kernel=_argmax,
        dtypes=NUMBERS,
        workspace=_argmax_workspace,
    )
)


def _axes(op_name: str, rank: int, axis: int | Sequence[int] | None) -> Axes:
    if axis is None:
        return tuple(range(rank))
    given = as_integers(axis, "The axis")
    axes = sorted(_reduction_axis(op_name, each, rank) for each in given)
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(
            f"Invalid reduction arguments: Axes contains duplicate dimension: {list(given)} "
            f"[Op:{op_name}]"
        )
    return tuple(axes)


def _reduction_axis(op_name: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Invalid reduction dimension ({axis} for input with {rank} dimension(s) [Op:{op_name}]"
        )
    return axis % rank


def _reduce(op: Op, x: Any, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor:
    x = adopt(x, None)
    return op(x, axis=_axes(op.name, x.ndim, axis), keepdims=bool(keepdims))


def reduce_sum(
    input_tensor: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the sum over axes.

    Args:
        input_tensor: The tensor.
        axis: One axis, several, or None for all.
        keepdims: Whether the reduced axes stay, with size 1.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis, or one is named twice.

    Example:
        >>> import mirrored as mr
        >>> mr.reduce_sum([[1, 2], [3, 4]], axis=0).numpy()
        array([4, 6], dtype=int32)
    """
    return _reduce(SUM, input_tensor, axis, keepdims)


def reduce_mean(
    input_tensor: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the mean over axes; that of integers is rounded to zero, that of nothing is NaN.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.reduce_mean([1.0, 2.0]))
        1.5
    """
    x = adopt(input_tensor, None)
    axes = _axes("Mean", x.ndim, axis)
    if x.dtype in INTEGERS and not math.prod(x.shape[i] for i in axes):
        raise InvalidArgumentError(
            f"There is no mean of no integers. Received: shape {x.shape} [Op:Mean]"
        )
    return MEAN(x, axis=axes, keepdims=bool(keepdims))


def reduce_max(
    input_tensor: Any,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the largest value over axes; that of nothing is the least value of the dtype.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.reduce_max([1.0, 2.0]))
        2.0
    """
    return _reduce(MAX, input_tensor, axis, keepdims)


def argmax(
    input: Any, axis: int | None = None, output_type: Any = int64, name: str | None = None
) -> Tensor:
    """Return the index of the largest value along an axis, the first where there are several.

    Args:
        input: The tensor.
        axis: The axis; None means 0, as in TensorFlow.
        output_type: Int32 or int64.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis, or it is empty.
        TypeError: `output_type` is not an integer dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.argmax([[1, 5], [7, 2]], axis=1).numpy()
        array([1, 0])
    """
    x, dtype = adopt(input, None), as_dtype(output_type)
    if dtype not in INTEGERS:
        raise TypeError(f"argmax returns int32 or int64. Received: output_type={dtype.name}")
    return ARGMAX(x, axis=normalize_axis("ArgMax", axis or 0, x.ndim), output_type=dtype)
