"""A choice of each element between two tensors, and where a condition holds."""

from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, as_tensors, constant, known_values
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.op import Grads, OpCall, define_op
from mirrored.ops.spec import TensorSpec, bool_, broadcast_shapes, check_same_dtype
from mirrored.ops.tensor import Tensor


def _infer(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if condition.dtype != bool_:
        raise InvalidArgumentError(
            "cannot compute SelectV2 as input #0(zero-based) was expected to be a bool tensor "
            f"but is a {condition.dtype.name} tensor. Use a comparison, as in `x > 0`. "
            "[Op:SelectV2]"
        )
    check_same_dtype("SelectV2", x, y)
    both = broadcast_shapes("SelectV2", x.shape, y.shape)
    return TensorSpec(broadcast_shapes("SelectV2", condition.shape, both), x.dtype)


def _select(xp: Any, out: Any, condition: Any, x: Any, y: Any) -> None:
    xp.copyto(out, y)
    xp.copyto(out, x, where=condition)


def _grad(call: OpCall, g: Tensor) -> Grads:
    condition, nothing = call.inputs[0], ZEROS_LIKE(g)
    return [None, lambda: SELECT(condition, g, nothing), lambda: SELECT(condition, nothing, g)]


SELECT = define_op(
    name="SelectV2",
    infer=_infer,
    kernel=_select,
    gradient=_grad,
    may_alias=(2,),  # What is there already is not copied to itself.
    elementwise=True,
)


@explained
def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return elements of x where a condition holds and of y elsewhere; or where it holds.

    Args:
        condition: Booleans; without `x` and `y` numbers too, of which 0 counts as false.
        x: What to take where it holds, of a shape that broadcasts; None: see below.
        y: What to take elsewhere.
        name: Accepted for compatibility.

    Returns:
        With `x` and `y` a tensor of their dtype. Without them the places where the condition holds,
        int64 of shape (places, rank), in order; how many there are nobody knows before, so a
        recorded function has no such op.

    Raises:
        ValueError: One of `x` and `y` is given without the other.
        InvalidArgumentError: The condition is not of booleans, or, without `x`, a scalar; or shapes
            or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.where([True, False], [1, 2], 0).numpy()
        array([1, 0], dtype=int32)
        >>> mr.where([[True, False], [True, True]]).numpy()
        array([[0, 0],
               [1, 0],
               [1, 1]])
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    condition = adopt(condition, None)
    if x is None:
        if not condition.ndim:
            raise InvalidArgumentError(
                "WhereOp : Unhandled input dimensions: 0. A scalar has no indices. [Op:Where]"
            )
        instead = "Pass `x` and `y`, from which elements are chosen."
        return constant(np.argwhere(known_values(condition, "places", instead)))
    return SELECT(condition, *as_tensors((x, y)))
