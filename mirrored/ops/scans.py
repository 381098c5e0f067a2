"""Sums, products and logarithms of sums of exponentials, of all elements up to each one.

On the host and on a card each goes along its axis once, in its order, so both round alike.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant
from mirrored.ops.elementwise import DIV_NO_NAN
from mirrored.ops.op import Op, OpCall, define_op
from mirrored.ops.powers import EXP, LOG
from mirrored.ops.select import SELECT
from mirrored.ops.spec import FLOATS, NUMBERS, DType, as_integer, float_limits
from mirrored.ops.tensor import Tensor


def _define(
    name: str,
    ufunc: str,
    neutral: float,
    gradient: Callable[[OpCall, Tensor], Tensor],
    dtypes: frozenset[DType],
) -> Op:
    """Define an op that a ufunc of the array module accumulates, which begins at `neutral`."""

    def kernel(xp: Any, out: Any, x: Any, *, axis: int, exclusive: bool, reverse: bool) -> None:
        before = (slice(None),) * axis
        if reverse:
            turned = (*before, slice(None, None, -1))
            out, x = out[turned], x[turned]
        if exclusive:
            xp.copyto(out[(*before, slice(0, 1))], neutral, casting="unsafe")
            out, x = out[(*before, slice(1, None))], x[(*before, slice(0, -1))]
        if not x.size:
            return
        getattr(xp, ufunc).accumulate(x, axis=axis, dtype=x.dtype, out=out)
        if ufunc != "multiply" and x.dtype.kind == "f":
            xp.add(out, 0.0, out=out)  # That of -0.0 is 0.0, since the neutral element was added.

    return define_op(
        name=name,
        infer=lambda x, axis, exclusive, reverse: x,
        kernel=kernel,
        gradient=lambda call, g: [gradient(call, g)],
        dtypes=dtypes,
    )


def _turned(call: OpCall) -> dict[str, Any]:
    """Return a scan's attributes for what flows back: from the other end."""
    return {**call.attrs, "reverse": not call.attrs["reverse"]}


def _grad_cumprod(call: OpCall, g: Tensor) -> Tensor:
    # As in TensorFlow it is 0 for an element that is 0 itself, of whatever the others are.
    return DIV_NO_NAN(CUMSUM(call.output * g, **_turned(call)), call.inputs[0])


def _grad_cumulative_logsumexp(call: OpCall, g: Tensor) -> Tensor:
    # Of the parts of either sign by themselves: their logarithms do not overflow where they do.
    lowest = constant(-float_limits(g.dtype)[1], g.dtype)

    def flow(part: Tensor) -> Tensor:
        logs = SELECT(part > 0.0, LOG(part), lowest)
        scanned = CUMULATIVE_LOGSUMEXP(logs - call.output, **_turned(call))
        return EXP(scanned + call.inputs[0])

    return flow(g) - flow(-g)


CUMSUM: Op = _define("Cumsum", "add", 0.0, lambda call, g: CUMSUM(g, **_turned(call)), NUMBERS)
CUMPROD = _define("Cumprod", "multiply", 1.0, _grad_cumprod, NUMBERS)
CUMULATIVE_LOGSUMEXP: Op = _define(
    "CumulativeLogsumexp", "logaddexp", -np.inf, _grad_cumulative_logsumexp, FLOATS
)


def _scanned(op: Op, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    x, place = adopt(x, None), as_integer(axis, "The axis")
    if not -x.ndim <= place < x.ndim:
        raise InvalidArgumentError(
            f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {place} "
            f"[Op:{op.name}]"
        )
    return op(x, axis=place % x.ndim, exclusive=bool(exclusive), reverse=bool(reverse))


def cumsum(
    x: TensorLike,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return for each element the sum of those up to it along an axis.

    Args:
        x: Numbers, of rank 1 or more.
        axis: The axis.
        exclusive: Whether an element itself is left out of its sum, so that the first is 0.
        reverse: Whether the sums begin at the end.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: `axis` is no integer.

    Example:
        >>> import mirrored as mr
        >>> mr.cumsum([1, 2, 3]).numpy()
        array([1, 3, 6], dtype=int32)
        >>> mr.cumsum([1, 2, 3], exclusive=True, reverse=True).numpy()
        array([5, 3, 0], dtype=int32)
    """
    return _scanned(CUMSUM, x, axis, exclusive, reverse)


def cumprod(
    x: TensorLike,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return for each element the product of those up to it along an axis.

    The gradient by an element that is 0 is 0, as in TensorFlow.

    Args and errors: as for `cumsum`; the first of the exclusive products is 1.

    Example:
        >>> import mirrored as mr
        >>> mr.math.cumprod([2, 3, 4]).numpy()
        array([ 2,  6, 24], dtype=int32)
    """
    return _scanned(CUMPROD, x, axis, exclusive, reverse)


def cumulative_logsumexp(
    x: TensorLike,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, without overflow.

    Args and errors: as for `cumsum`, of floats; the first of the exclusive ones is -inf.

    Example:
        >>> import mirrored as mr
        >>> mr.math.cumulative_logsumexp([1000.0, 1000.0]).numpy()
        array([1000.    , 1000.6932], dtype=float32)
    """
    return _scanned(CUMULATIVE_LOGSUMEXP, x, axis, exclusive, reverse)


explain_functions(__name__)
