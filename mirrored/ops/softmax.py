"""Softmax, its logarithm, and the logarithm of a sum of exponentials, all without overflow.

The fused losses share the kernel of softmax.
"""

from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.activations import remember
from mirrored.ops.clipping import clip_by_value
from mirrored.ops.conversion import adopt
from mirrored.ops.op import Grads, OpCall, define_op
from mirrored.ops.powers import EXP, LOG
from mirrored.ops.reduction import SUM, reduce_max, reduce_sum
from mirrored.ops.shaping import normalize_axis, reshape, stop_gradient
from mirrored.ops.spec import FLOATS, TensorSpec, check_dtype, float_limits
from mirrored.ops.tensor import Tensor


def row_spec(x: TensorSpec, axis: int) -> TensorSpec:
    """Return the spec of one value a row: that of `x` with size 1 along `axis`."""
    return TensorSpec((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)


def softmax_into(xp: Any, out: Any, x: Any, row: Any, axis: int) -> None:
    """Write the softmax of `x` along `axis` into `out`; `row` is scratch of `row_spec`."""
    if not x.size:
        return
    xp.maximum.reduce(x, axis=axis, keepdims=True, out=row)
    xp.subtract(x, row, out=out)
    xp.exp(out, out=out)
    xp.add.reduce(out, axis=axis, keepdims=True, out=row)
    xp.divide(out, row, out=out)


def _softmax(xp: Any, out: Any, x: Any, *, axis: int, workspace: Any) -> None:
    softmax_into(xp, out, x, workspace[0], axis)


def _grad_softmax(call: OpCall, g: Tensor) -> Grads:
    weighted = g * call.output
    total = SUM(weighted, axis=(call.attrs["axis"],), keepdims=True)
    return [weighted - call.output * total]


def _log_softmax(xp: Any, out: Any, x: Any, *, axis: int, workspace: Any) -> None:
    if not x.size:
        return
    scratch, row = workspace
    xp.maximum.reduce(x, axis=axis, keepdims=True, out=row)
    xp.subtract(x, row, out=out)
    xp.exp(out, out=scratch)
    xp.add.reduce(scratch, axis=axis, keepdims=True, out=row)
    xp.log(row, out=row)
    xp.subtract(out, row, out=out)


def _grad_log_softmax(call: OpCall, g: Tensor) -> Grads:
    total = SUM(g, axis=(call.attrs["axis"],), keepdims=True)
    return [g - EXP(call.output) * total]


SOFTMAX, LOG_SOFTMAX = (
    define_op(
        name=name,
        infer=lambda x, axis: x,
        kernel=kernel,
        gradient=gradient,
        dtypes=FLOATS,
        workspace=workspace,
        may_alias=(0,),
    )
    for name, kernel, gradient, workspace in (
        ("Softmax", _softmax, _grad_softmax, lambda x, axis: (row_spec(x, axis),)),
        ("LogSoftmax", _log_softmax, _grad_log_softmax, lambda x, axis: (x, row_spec(x, axis))),
    )
)


def _one_axis(op_name: str, axis: int | None, rank: int) -> int:
    if isinstance(axis, tuple | list):
        raise InvalidArgumentError(
            f"`axis` must be one axis. Received: axis={axis} [Op:{op_name}]. `keras.activations."
            "softmax` takes several."
        )
    return normalize_axis(op_name, -1 if axis is None else axis, rank)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Return exp(logits) divided by its sum along `axis`, the last one unless it is given.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.softmax([[0.0, 0.0]]).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """
    x = adopt(logits, None)
    axis = _one_axis("Softmax", axis, x.ndim)
    probabilities = SOFTMAX(x, axis=axis)
    return remember(probabilities, "softmax", x) if axis == x.ndim - 1 else probabilities


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Return the logarithm of softmax along `axis`, finite where softmax would round to 0.

    Args:
        logits: Floats of rank 1 or more.
        axis: The axis of the classes, the last one unless it is given.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.log_softmax([[0.0, 1000.0]]).numpy()
        array([[-1000.,     0.]], dtype=float32)
    """
    x = adopt(logits, None)
    return LOG_SOFTMAX(x, axis=_one_axis("LogSoftmax", axis, x.ndim))


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return log(sum(exp(x))) over axes, without overflow; that of nothing is -inf.

    Args:
        input_tensor: Floats.
        axis: One axis, several, or None for all.
        keepdims: Whether the reduced axes stay, with size 1.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: There is no such axis, one is named twice, or it holds no floats.

    Example:
        >>> import mirrored as mr
        >>> float(mr.reduce_logsumexp([1000.0, 1000.0]))
        1000.6931762695312
    """
    x = adopt(input_tensor, None)
    check_dtype("Exp", FLOATS, x.spec)
    # Where the largest is infinite, exp has to meet the infinities themselves.
    _, most = float_limits(x.dtype)
    highest = stop_gradient(clip_by_value(reduce_max(x, axis, keepdims=True), -most, most))
    total = LOG(reduce_sum(EXP(x - highest), axis, keepdims))
    return total + reshape(highest, total.shape)


explain_functions(__name__)
