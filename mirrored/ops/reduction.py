"""Ops that reduce axes: sums, means, products, extremes and their places.

On the host they run in NumPy's fixed order, so two runs give the same bits.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.creation import ONES_LIKE
from mirrored.ops.dispatch import execute
from mirrored.ops.op import Gradient, Grads, Kernel, Op, OpCall, define_op
from mirrored.ops.shaping import BROADCAST_TO, CAST, CONCAT, RESHAPE, normalize_axis, transpose
from mirrored.ops.spec import (
    INDICES,
    INTEGERS,
    NUMBERS,
    TENSORFLOW_NAMES,
    DType,
    Shape,
    TensorSpec,
    as_dtype,
    as_integers,
    bounds,
    int16,
    int32,
    int64,
    uint16,
    uint64,
)
from mirrored.ops.tensor import Tensor

Axes = tuple[int, ...]


def _reduced_shape(shape: Shape, axis: Axes, keepdims: bool) -> Shape:
    if keepdims:
        return tuple(1 if i in axis else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axis)


def define(
    name: str,
    kernel: Kernel,
    gradient: Gradient | None = None,
    dtypes: frozenset[DType] = NUMBERS,
    workspace: Callable[..., tuple[TensorSpec, ...]] | None = None,
) -> Op:
    """Define an op that reduces axes; its result has the input's dtype. Arguments as for `Op`."""

    def infer(x: TensorSpec, *, axis: Axes, keepdims: bool) -> TensorSpec:
        return TensorSpec(_reduced_shape(x.shape, axis, keepdims), x.dtype)

    return define_op(
        name=name,
        infer=infer,
        kernel=kernel,
        gradient=gradient,
        dtypes=dtypes,
        workspace=workspace,
    )


def _sum(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
    xp.add.reduce(x, axis, x.dtype, out, keepdims)


def _mean_workspace(x: TensorSpec, *, axis: Axes, keepdims: bool) -> tuple[TensorSpec, ...]:
    # Integers are summed in 64 bits, as TensorFlow's are, and divided there.
    wide = uint64 if x.dtype == uint64 else int64
    sums = TensorSpec(_reduced_shape(x.shape, axis, keepdims), wide)
    return (sums, sums) if x.dtype in INTEGERS else ()


def _mean(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool, workspace: Any) -> None:
    if out.size == x.size:  # Each is the mean of itself alone.
        xp.copyto(out, x.reshape(out.shape))
        return
    count = math.prod(x.shape[i] for i in axis)
    if workspace:
        sums, rests = workspace
        xp.add.reduce(x, axis=axis, dtype=sums.dtype, keepdims=keepdims, out=sums)
        xp.fmod(sums, count, out=rests)  # Of the sum's sign, so the quotient rounds towards zero.
        xp.subtract(sums, rests, out=sums)
        xp.floor_divide(sums, count, out=sums)
        xp.copyto(out, sums, casting="unsafe")
    else:
        xp.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims, out=out)
        xp.divide(out, count, out=out)


def _prod(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
    xp.multiply.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims, out=out)


def extreme(ufunc: str, of_nothing: Callable[[DType], Any]) -> Kernel:
    """Return the kernel of a reduction by a ufunc, for which NumPy has no result of nothing.

    Args:
        ufunc: "maximum" or "minimum".
        of_nothing: From the dtype to the result of nothing, as TensorFlow has it.
    """

    def kernel(xp: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> None:
        if x.size:
            getattr(xp, ufunc).reduce(x, axis=axis, keepdims=keepdims, out=out)
        else:
            xp.copyto(out, of_nothing(x.dtype))

    return kernel


def _spread(call: OpCall, g: Tensor) -> Tensor:
    """Bring a gradient of the reduced shape back to the input's shape."""
    shape = call.inputs[0].shape
    kept = RESHAPE(g, shape=_reduced_shape(shape, call.attrs["axis"], True))
    return BROADCAST_TO(kept, shape=shape)


def _grad_sum(call: OpCall, g: Tensor) -> Grads:
    return [_spread(call, g)]


def _grad_mean(call: OpCall, g: Tensor) -> Grads:
    shape = call.inputs[0].shape
    count = math.prod(shape[i] for i in call.attrs["axis"])
    return [_spread(call, g / float(count))]


def _grad_prod(call: OpCall, g: Tensor) -> Grads:
    x, axis = call.inputs[0], call.attrs["axis"]
    order = (*(i for i in range(x.ndim) if i not in axis), *axis)
    moved = transpose(x, order)
    length = math.prod(x.shape[i] for i in axis)
    others = _products_of_others(RESHAPE(moved, shape=(x.size // max(length, 1), length)))
    back = transpose(RESHAPE(others, shape=moved.shape), sorted(order, key=order.__getitem__))
    return [_spread(call, g) * back]


def _products_of_others(rows: Tensor) -> Tensor:
    """Return for each element the product of all others of its row, zeros among them or not."""
    half = rows.shape[1] // 2
    if not half:
        return ONES_LIKE(rows)
    # Of pairs, and what is left over where there is one element more.
    left, right, rest = rows[:, :half], rows[:, half : 2 * half], rows[:, 2 * half :]
    outer = _products_of_others(CONCAT(left * right, rest, axis=1))
    return CONCAT(outer[:, :half] * right, outer[:, :half] * left, outer[:, half:], axis=1)


def _grad_extreme(call: OpCall, g: Tensor) -> Grads:
    # Where several elements are the largest they share the gradient, as in TensorFlow.
    x, attrs = call.inputs[0], call.attrs
    chosen = CAST(x == _spread(call, call.output), dtype=g.dtype)
    shares = SUM(chosen, axis=attrs["axis"], keepdims=attrs["keepdims"])
    return [chosen * _spread(call, g / shares)]


SUM = define("Sum", _sum, _grad_sum)
MEAN = define("Mean", _mean, _grad_mean, workspace=_mean_workspace)
PROD = define("Prod", _prod, _grad_prod)
MAX = define("Max", extreme("maximum", lambda dtype: bounds(dtype)[0]), _grad_extreme)
MIN = define("Min", extreme("minimum", lambda dtype: bounds(dtype)[1]), _grad_extreme)


def _place_workspace(x: TensorSpec, *, axis: int, output_type: DType) -> tuple[TensorSpec, ...]:
    moved = (*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis])
    # NumPy copies the input where the axis is not the last, so that copy is declared and made here.
    copy = () if axis == len(x.shape) - 1 else (TensorSpec(moved, x.dtype),)
    return (TensorSpec(moved[:-1], int64), *copy)


def _define_place(name: str, function: str) -> Op:
    """Define an op of the index that a function of the array module finds along an axis."""

    def infer(x: TensorSpec, *, axis: int, output_type: DType) -> TensorSpec:
        if x.shape[axis] == 0:
            raise InvalidArgumentError(
                f"Reduction axis {axis} is empty in shape {x.shape} [Op:{name}]"
            )
        return TensorSpec(_reduced_shape(x.shape, (axis,), False), output_type)

    def kernel(xp: Any, out: Any, x: Any, *, axis: int, output_type: DType, workspace: Any) -> None:
        places, *copy = workspace
        if copy:
            xp.copyto(copy[0], xp.moveaxis(x, axis, -1))
            x = copy[0]
        getattr(xp, function)(x, axis=-1, out=places)
        xp.copyto(out, places, casting="same_kind")

    return define_op(
        name=name, infer=infer, kernel=kernel, dtypes=NUMBERS, workspace=_place_workspace
    )


ARGMAX = _define_place("ArgMax", "argmax")
ARGMIN = _define_place("ArgMin", "argmin")


def _axes(op_name: str, rank: int, axis: int | Sequence[int] | None) -> Axes:
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    numbers = as_integers(axis, "The axis")
    for number in numbers:
        if not -rank <= number < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension ({number} for input with {rank} dimension(s) "
                f"[Op:{op_name}]"
            )
    axes = sorted(number % rank for number in numbers)
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(
            f"Invalid reduction arguments: Axes contains duplicate dimension: {list(numbers)} "
            f"[Op:{op_name}]"
        )
    return tuple(axes)


def reduce(op: Op, x: Any, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor:
    """Return what a reduction makes of an argument, with the axes as a caller gives them."""
    x, keeps = adopt(x, None), bool(keepdims)
    axes = _axes(op.name, len(x._spec.shape), axis)
    return execute(op, (x,), {"axis": axes, "keepdims": keeps}, (op, x._spec, axes, keeps))


def reduce_sum(
    input_tensor: TensorLike,
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
    return reduce(SUM, input_tensor, axis, keepdims)


def reduce_mean(
    input_tensor: TensorLike,
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
    if x.dtype in INTEGERS and not math.prod(x.shape[i] for i in _axes("Mean", x.ndim, axis)):
        raise InvalidArgumentError(
            f"The mean of 0 integers is not defined. Received: shape {x.shape} [Op:Mean]"
        )
    return reduce(MEAN, x, axis, keepdims)


def reduce_max(
    input_tensor: TensorLike,
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
    return reduce(MAX, input_tensor, axis, keepdims)


def reduce_min(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the smallest value over axes; that of nothing is the largest value of the dtype.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.reduce_min([1.0, 2.0]))
        1.0
    """
    return reduce(MIN, input_tensor, axis, keepdims)


def reduce_prod(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the product over axes; that of nothing is 1.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> mr.reduce_prod([[1, 2], [3, 4]], axis=1).numpy()
        array([ 2, 12], dtype=int32)
    """
    return reduce(PROD, input_tensor, axis, keepdims)


def argmax(
    input: TensorLike,
    axis: int | None = None,
    output_type: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the largest value along an axis, the first where there are several.

    Args:
        input: The tensor.
        axis: The axis; None means 0, as in TensorFlow.
        output_type: Int32 or int64; int16 or uint16, of which a larger index wraps around.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis, or it is empty; or `output_type` is another
            dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.argmax([[1, 5], [7, 2]], axis=1).numpy()
        array([1, 0])
    """
    return _place(ARGMAX, input, axis, output_type)


def argmin(
    input: TensorLike,
    axis: int | None = None,
    output_type: DTypeLike = int64,
    name: str | None = None,
) -> Tensor:
    """Return the index of the smallest value along an axis, the first where there are several.

    Args and errors: as for `argmax`, but that `output_type` is int32 or int64, as in TensorFlow.

    Example:
        >>> import mirrored as mr
        >>> mr.argmin([[1, 5], [7, 2]], axis=1).numpy()
        array([0, 1])
    """
    return _place(ARGMIN, input, axis, output_type)


def _place(op: Op, input: Any, axis: int | None, output_type: Any) -> Tensor:
    x, dtype = adopt(input, None), as_dtype(output_type)
    allowed = {int16, uint16, *INDICES} if op is ARGMAX else INDICES
    if dtype not in allowed:
        raise InvalidArgumentError(
            f"Value for attr 'output_type' of {TENSORFLOW_NAMES[dtype]} is not in the list of "
            f"allowed values: {', '.join(sorted(kind.name for kind in allowed))} [Op:{op.name}]"
        )
    wide = dtype if dtype in INDICES else int32
    positions = op(x, axis=normalize_axis(op.name, axis or 0, x.ndim), output_type=wide)
    return positions if wide is dtype else CAST(positions, dtype=dtype)


explain_functions(__name__, all_but="define extreme reduce")
