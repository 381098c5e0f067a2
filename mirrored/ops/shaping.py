"""Ops that rearrange values without computing: reshape, transpose, concat, broadcasting.

Results are C-contiguous; those that need not move anything are views of their input.
"""

import math
from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, as_tensors
from mirrored.ops.hooks import UnknownShape
from mirrored.ops.op import OPS, Grads, OpCall, define_op
from mirrored.ops.slicing import STRIDED_SLICE, sliced_along
from mirrored.ops.spec import (
    FLOATS,
    Shape,
    TensorSpec,
    as_dtype,
    as_integer,
    as_integers,
    as_shape,
    broadcast_shapes,
    check_same_dtype,
    same_spec,
    shape_text,
)
from mirrored.ops.tensor import Tensor


def normalize_axis(op_name: str, axis: Any, rank: int) -> int:
    """Return `axis` counted from the front.

    Raises:
        TypeError: It is no integer.
        InvalidArgumentError: The tensor has no such axis.
    """
    numbers: Shape = (axis,) if type(axis) is int else as_integers(axis, "The axis")
    number = numbers[0] if len(numbers) == 1 else as_integer(axis, "The axis")
    if not -rank <= number < rank:
        raise InvalidArgumentError(
            f"Invalid axis {number} for input with {rank} dimension(s): expected a value in the "
            f"range [{-rank}, {rank}) [Op:{op_name}]"
        )
    return number % rank


# ---------------------------------------------------------------------------- views


IDENTITY = define_op(
    name="Identity", infer=same_spec, view=lambda x: x, gradient=lambda call, g: [g]
)
STOP_GRADIENT = define_op(name="StopGradient", infer=same_spec, view=lambda x: x)


def _infer_view(x: TensorSpec, *, shape: Shape) -> TensorSpec:
    return TensorSpec(shape, x.dtype)


def _view_with_shape(x: Any, *, shape: Shape) -> Any:
    return x.reshape(shape)


def _grad_view(call: OpCall, g: Tensor) -> Grads:
    return [RESHAPE(g, shape=call.inputs[0].shape)]


RESHAPE, EXPAND_DIMS, SQUEEZE = (
    define_op(name=name, infer=_infer_view, view=_view_with_shape, gradient=_grad_view)
    for name in ("Reshape", "ExpandDims", "Squeeze")
)


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """Return `input` itself, on the device that is current.

    Example:
        >>> import mirrored as mr
        >>> mr.identity([1.0]).numpy()
        array([1.], dtype=float32)
    """
    return IDENTITY(input)


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """Return `input` as a constant: no gradient flows through it.

    Example:
        >>> import mirrored as mr
        >>> float(mr.stop_gradient(3.0))
        3.0
    """
    return STOP_GRADIENT(input)


def reshape(tensor: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Return the elements of `tensor` in another shape.

    Args:
        tensor: The tensor.
        shape: The sizes; one of them may be -1, which stands for what remains.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The numbers of elements differ.

    Example:
        >>> import mirrored as mr
        >>> mr.reshape([1, 2, 3, 4], (2, -1)).shape
        (2, 2)
    """
    if isinstance(tensor, UnknownShape) and not tensor.is_known:
        sizes = tuple(as_integers(shape, "The shape"))
        if -1 not in sizes:
            return tensor.reshaped(sizes)
    x = adopt(tensor, None)
    return RESHAPE(x, shape=_resolved(x.shape, shape))


def _resolved(own: Shape, shape: Any) -> Shape:
    size = math.prod(own)
    sizes = list(as_integers(shape, "The shape"))
    if sizes.count(-1) > 1:
        raise InvalidArgumentError(
            f"Only one input size may be -1, not several. Received: {tuple(sizes)} [Op:Reshape]"
        )
    if -1 in sizes:
        # Beside a 0 it is what remains of the sizes that are none, as in TensorFlow.
        known = math.prod(length for length in sizes if length not in (-1, 0))
        whole = math.prod(length for length in own if length) if 0 in sizes else size
        sizes[sizes.index(-1)] = whole // known
    result = as_shape(sizes)
    if math.prod(result) != size:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {size} values, but the requested shape has "
            f"{math.prod(result)} [Op:Reshape]"
        )
    return result


def expand_dims(input: TensorLike, axis: int, name: str | None = None) -> Tensor:
    """Return `input` with a new axis of size 1 at `axis`.

    Example:
        >>> import mirrored as mr
        >>> mr.expand_dims([1.0, 2.0], -1).shape
        (2, 1)
    """
    x = adopt(input, None)
    axis = normalize_axis("ExpandDims", axis, x.ndim + 1)
    return EXPAND_DIMS(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(
    input: TensorLike, axis: int | Sequence[int] | None = None, name: str | None = None
) -> Tensor:
    """Return `input` without its axes of size 1, or without those that `axis` names, if any.

    Raises:
        InvalidArgumentError: An axis named is not of size 1.

    Example:
        >>> import mirrored as mr
        >>> mr.squeeze([[1.0], [2.0]], axis=1).shape
        (2,)
    """
    x = adopt(input, None)
    axes = () if axis is None else as_integers(axis, "The axis")
    gone = {normalize_axis("Squeeze", number, x.ndim) for number in axes}
    if not axes:
        gone = {i for i, size in enumerate(x.shape) if size == 1}
    for place in gone:
        if x.shape[place] != 1:
            raise InvalidArgumentError(
                f"Can not squeeze dim[{place}], expected a dimension of 1, got {x.shape[place]} "
                "[Op:Squeeze]"
            )
    return SQUEEZE(x, shape=tuple(size for i, size in enumerate(x.shape) if i not in gone))


# ---------------------------------------------------------------------------- cast, broadcast


def _infer_cast(x: TensorSpec, *, dtype: Any) -> TensorSpec:
    return TensorSpec(x.shape, dtype)


def _cast(xp: Any, out: Any, x: Any, *, dtype: Any) -> None:
    xp.copyto(out, x, casting="unsafe")


def _grad_cast(call: OpCall, g: Tensor) -> Grads:
    # Integers have no derivative; the tape does not follow them, but this rule may be asked.
    source = call.inputs[0].dtype
    return [CAST(g, dtype=source) if source in FLOATS and g.dtype in FLOATS else None]


CAST = define_op(
    name="Cast", infer=_infer_cast, kernel=_cast, gradient=_grad_cast, elementwise=True
)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Return `x` in another dtype; the same tensor where it has that one.

    Floats become integers by dropping the fraction, and booleans by being other than zero.

    Example:
        >>> import mirrored as mr
        >>> mr.cast([1.7, -1.7], mr.int32).numpy()
        array([ 1, -1], dtype=int32)
    """
    if isinstance(x, Tensor) and x._spec.dtype is dtype:
        return x
    x, wanted = adopt(x, None), as_dtype(dtype)
    return x if x.dtype == wanted else CAST(x, dtype=wanted)


def _infer_broadcast(x: TensorSpec, *, shape: Shape) -> TensorSpec:
    if broadcast_shapes("BroadcastTo", x.shape, shape) != shape:
        raise InvalidArgumentError(
            f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(shape)} [Op:BroadcastTo]"
        )
    return TensorSpec(shape, x.dtype)


def _broadcast(xp: Any, out: Any, x: Any, *, shape: Shape) -> None:
    xp.copyto(out, x)


BROADCAST_TO = define_op(
    name="BroadcastTo",
    infer=_infer_broadcast,
    kernel=_broadcast,
    gradient=lambda call, g: [g],  # It is summed over the axes that are repeated.
)


def broadcast_to(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Return `input` repeated along axes of size 1 and along new leading axes.

    Example:
        >>> import mirrored as mr
        >>> mr.broadcast_to([1, 2], (2, 2)).numpy()
        array([[1, 2],
               [1, 2]], dtype=int32)
    """
    return BROADCAST_TO(input, shape=as_shape(shape))


def sum_to_shape(g: Tensor, shape: Shape) -> Tensor:
    """Undo a broadcast in a gradient: sum over the axes along which `shape` was repeated."""
    if g._spec.shape == shape:
        return g
    leading = g.ndim - len(shape)
    repeated = (i + leading for i, size in enumerate(shape) if size == 1 != g.shape[i + leading])
    axes = (*range(leading), *repeated)
    return RESHAPE(OPS["Sum"](g, axis=axes, keepdims=False), shape=shape)


# ---------------------------------------------------------------------------- transpose, concat


def _infer_transpose(x: TensorSpec, *, perm: tuple[int, ...]) -> TensorSpec:
    return TensorSpec(tuple(x.shape[axis] for axis in perm), x.dtype)


def _transpose(xp: Any, out: Any, x: Any, *, perm: tuple[int, ...]) -> None:
    xp.copyto(out, x.transpose(perm))


def _grad_transpose(call: OpCall, g: Tensor) -> Grads:
    perm = call.attrs["perm"]
    return [TRANSPOSE(g, perm=tuple(perm.index(axis) for axis in range(len(perm))))]


TRANSPOSE = define_op(
    name="Transpose", infer=_infer_transpose, kernel=_transpose, gradient=_grad_transpose
)


def transpose(
    a: TensorLike, perm: Sequence[int] | None = None, *, name: str | None = "transpose"
) -> Tensor:
    """Return `a` with its axes permuted.

    Args:
        a: The tensor.
        perm: For each axis of the result the axis of `a` that it is; None reverses them.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: `perm` is not a permutation of the axes.

    Example:
        >>> import mirrored as mr
        >>> mr.transpose([[1, 2, 3]]).shape
        (3, 1)
    """
    x = adopt(a, None)
    order = tuple(range(x.ndim))[::-1] if perm is None else as_integers(perm, "`perm`")
    inside = all(-x.ndim <= axis < x.ndim for axis in order)
    if not inside or sorted(axis % x.ndim for axis in order) != list(range(x.ndim)):
        raise InvalidArgumentError(
            f"`perm` must be a permutation of the {x.ndim} axes of the input. Received: "
            f"{order} [Op:Transpose]"
        )
    return TRANSPOSE(x, perm=tuple(axis % x.ndim for axis in order))


def _infer_concat(*specs: TensorSpec, axis: int) -> TensorSpec:
    check_same_dtype("ConcatV2", *specs)
    first = specs[0].shape
    for i, spec in enumerate(specs):
        same_rank = len(spec.shape) == len(first)
        if not same_rank or any(spec.shape[d] != first[d] for d in range(len(first)) if d != axis):
            raise InvalidArgumentError(
                "ConcatOp : Dimensions of inputs should match: "
                f"shape[0] = {shape_text(first)} vs. shape[{i}] = {shape_text(spec.shape)} "
                "[Op:ConcatV2]"
            )
    total = sum(spec.shape[axis] for spec in specs)
    return TensorSpec((*first[:axis], total, *first[axis + 1 :]), specs[0].dtype)


def _concat(xp: Any, out: Any, *arrays: Any, axis: int) -> None:
    xp.concatenate(arrays, axis=axis, out=out)


def _grad_concat(call: OpCall, g: Tensor) -> Grads:
    axis, start, grads = call.attrs["axis"], 0, []
    for x in call.inputs:
        stop = start + x.shape[axis]
        grads.append(sliced_along(g, axis, slice(start, stop)))
        start = stop
    return grads


CONCAT = define_op(name="ConcatV2", infer=_infer_concat, kernel=_concat, gradient=_grad_concat)


def _infer_pack(*specs: TensorSpec) -> TensorSpec:
    check_same_dtype("Pack", *specs)
    for i, spec in enumerate(specs):
        if spec.shape != specs[0].shape:
            raise InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(specs[0].shape)} "
                f"!= values[{i}].shape = {shape_text(spec.shape)} [Op:Pack]"
            )
    return TensorSpec((len(specs), *specs[0].shape), specs[0].dtype)


def _pack(xp: Any, out: Any, *arrays: Any) -> None:
    for row, array in enumerate(arrays):
        xp.copyto(out[row, ...], array)


# What makes one tensor of a list of them, wherever an op is given such a list.
PACK = define_op(
    name="Pack",
    infer=_infer_pack,
    kernel=_pack,
    gradient=lambda call, g: [STRIDED_SLICE(g, index=(i,)) for i in range(len(call.inputs))],
)


def concat(values: Sequence[Any], axis: int, name: str | None = "concat") -> Tensor:
    """Return the tensors `values` joined along `axis`.

    Raises:
        ValueError: There are none.
        InvalidArgumentError: Their shapes or dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.concat([[1, 2], [3]], axis=0).numpy()
        array([1, 2, 3], dtype=int32)
    """
    if not isinstance(values, list | tuple):
        values = (values,)
    if not values:
        raise ValueError(f"concat takes a list of at least one tensor. Received: {values!r:.80}")
    tensors = as_tensors(tuple(values))
    if tensors[0].ndim == 0:
        raise InvalidArgumentError(
            "ConcatOp : Expected at least one axis. Received: scalars. Add an axis to each with "
            "mr.expand_dims. [Op:ConcatV2]"
        )
    return CONCAT(*tensors, axis=normalize_axis("ConcatV2", axis, tensors[0].ndim))


explain_functions(__name__, all_but="identity normalize_axis stop_gradient sum_to_shape")
