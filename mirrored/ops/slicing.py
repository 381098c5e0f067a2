"""Ops behind the indexing of tensors, which takes integers, slices, new axes and an ellipsis.

A slice is a copy, so that what is kept of a tensor does not keep all of it alive.
"""

from typing import Any

from mirrored.errors import InvalidArgumentError
from mirrored.ops.dispatch import execute
from mirrored.ops.op import Grads, OpCall, define_op
from mirrored.ops.spec import Shape, TensorSpec, check_same_dtype, shape_text
from mirrored.ops.tensor import Index, Tensor, index_items, is_mask, operators

_BOUNDS = frozenset((int, type(None)))
_ITEMS = frozenset((int, type(None), type(...)))


def _infer_slice(x: TensorSpec, *, index: tuple[Any, ...]) -> TensorSpec:
    axes = sum(item is not None and item is not Ellipsis for item in index)
    if sum(item is Ellipsis for item in index) > 1:
        raise InvalidArgumentError(
            "Multiple ellipses in slice spec not allowed. Leave one `...`. [Op:StridedSlice]"
        )
    if axes > len(x.shape):
        raise InvalidArgumentError(
            f"Index out of range using input dim {axes - 1}; input has only {len(x.shape)} dims. "
            f"Received the index {index} [Op:StridedSlice]"
        )
    axis = 0
    shape: list[int] = []
    for item in index:
        if item is Ellipsis:
            rest = len(x.shape) - axes
            shape.extend(x.shape[axis : axis + rest])
            axis += rest
        elif item is None:
            shape.append(1)
        else:
            if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
                raise InvalidArgumentError(
                    f"slice index {item} of dimension {axis} out of bounds. [Op:StridedSlice]"
                )
            if isinstance(item, slice) and item.step == 0:
                raise InvalidArgumentError(
                    f"strides[{axis}] must be non-zero. Received: {item} [Op:StridedSlice]"
                )
            if isinstance(item, slice):
                shape.append(len(range(*item.indices(x.shape[axis]))))
            axis += 1
    return TensorSpec((*shape, *x.shape[axis:]), x.dtype)


def _view(x: Any, index: tuple[Any, ...], ndim: int) -> Any:
    """Return a view, of `ndim` axes; integers alone would give a copy of a number."""
    return x[index if ndim or Ellipsis in index else (*index, ...)]


def _slice(xp: Any, out: Any, x: Any, *, index: tuple[Any, ...]) -> None:
    xp.copyto(out, _view(x, index, out.ndim))


def _grad_slice(call: OpCall, g: Tensor) -> Grads:
    return [SLICE_GRAD(g, index=call.attrs["index"], shape=call.inputs[0].shape)]


def _slice_grad(xp: Any, out: Any, g: Any, *, index: tuple[Any, ...], shape: Shape) -> None:
    xp.copyto(out, 0, casting="unsafe")
    xp.copyto(_view(out, index, g.ndim), g)


STRIDED_SLICE = define_op(
    name="StridedSlice", infer=_infer_slice, kernel=_slice, gradient=_grad_slice
)
SLICE_GRAD = define_op(
    name="StridedSliceGrad",
    infer=lambda g, *, index, shape: TensorSpec(shape, g.dtype),
    kernel=_slice_grad,
    gradient=lambda call, g: [STRIDED_SLICE(g, index=call.attrs["index"])],
)


def _infer_update(x: TensorSpec, part: TensorSpec, *, index: tuple[Any, ...]) -> TensorSpec:
    name = "TensorStridedSliceUpdate"
    check_same_dtype(name, x, part)
    if _infer_slice(x, index=index).shape != part.shape:
        raise InvalidArgumentError(
            f"A part of shape {shape_text(part.shape)} does not fit into the index {index} of "
            f"shape {shape_text(x.shape)} [Op:{name}]"
        )
    return x


def _update(xp: Any, out: Any, x: Any, part: Any, *, index: tuple[Any, ...]) -> None:
    xp.copyto(out, x)
    xp.copyto(_view(out, index, part.ndim), part)


# Of what is assigned no gradient is asked.
SLICE_UPDATE = define_op(
    name="TensorStridedSliceUpdate", infer=_infer_update, kernel=_update, may_alias=(0,)
)


def indexed(x: Any, index: Any) -> Tensor:
    """Return what an index gives of a tensor, or of what stands for one.

    Its plan is found by the numbers in the index, for an index with a hash takes longer to make.
    """
    items = index if type(index) is tuple else (index,)
    if isinstance(x, Tensor):
        shape = x._spec.shape
        if type(index) is int and shape and -shape[0] <= index < shape[0]:  # All have one plan.
            return execute(STRIDED_SLICE, (x,), {"index": items}, (STRIDED_SLICE, x._spec, int))
        signature: list[Any] = [STRIDED_SLICE, x._spec]
        has_hash = True
        for item in items:
            kind = type(item)
            if kind is slice:
                start, stop, step = item.start, item.stop, item.step
                if not (type(start) in _BOUNDS and type(stop) in _BOUNDS and type(step) in _BOUNDS):
                    break
                signature += (slice, start, stop, step)
                has_hash = False
            elif kind in _ITEMS:
                signature.append(item)
            else:
                break
        else:
            attrs = {"index": items if has_hash else Index(items)}
            return execute(STRIDED_SLICE, (x,), attrs, tuple(signature))
    if is_mask(index):
        return operators["boolean_mask"](x, index)
    return STRIDED_SLICE(x, index=index_items(index))


operators["index"] = indexed


def sliced_along(x: Tensor, axis: int, part: slice | int) -> Tensor:
    """Return a part of a tensor along one axis."""
    return STRIDED_SLICE(x, index=(*[slice(None)] * axis, part))
