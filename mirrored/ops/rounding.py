"""Rounding, and division that rounds: no gradient passes through what was rounded away."""

from functools import partial
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import as_tensors, convert_to_tensor, is_tensor
from mirrored.ops.elementwise import binary, unary
from mirrored.ops.op import OPS, Check, Grads, OpCall
from mirrored.ops.spec import (
    INTEGERS,
    NUMBERS,
    WIDE_FLOATS,
    TensorSpec,
    bool_,
    broadcast_shapes,
    float32,
)
from mirrored.ops.tensor import Tensor


def _check_of_divisor(op: str, x: Any, y: Any) -> Check | None:
    def check() -> None:
        if not y.all():
            raise InvalidArgumentError(
                f"Integer division by zero. Received: a divisor of 0. [Op:{op}]"
            )

    return check if y.dtype in INTEGERS and x.size and y.size else None


def _floordiv(xp: Any, out: Any, x: Any, y: Any) -> None:
    if out.dtype in INTEGERS:
        xp.floor_divide(x, y, out=out)
        return
    xp.divide(x, y, out=out)  # NumPy's own rounds otherwise: its 1.0 // 0.1 is 9.
    xp.floor(out, out=out)


def _floormod(xp: Any, out: Any, x: Any, y: Any, *, workspace: Any) -> None:
    if out.dtype in INTEGERS:
        xp.remainder(x, y, out=out)
        return
    # A rest of 0 has the sign of x, as in TensorFlow; NumPy's own has that of y.
    wrong, other = workspace
    xp.fmod(x, y, out=out)
    xp.less(out, 0, out=wrong)
    xp.less(y, 0, out=other)
    xp.not_equal(wrong, other, out=wrong)
    xp.not_equal(out, 0, out=other)
    xp.logical_and(wrong, other, out=wrong)
    xp.add(out, y, where=wrong, out=out)


def _signs(x: TensorSpec, y: TensorSpec) -> tuple[TensorSpec, ...]:
    if x.dtype in INTEGERS:
        return ()
    return (TensorSpec(broadcast_shapes("FloorMod", x.shape, y.shape), bool_),) * 2


def _grad_floormod(call: OpCall, g: Tensor) -> Grads:
    return [g, lambda: -g * FLOORDIV(*call.inputs)]


FLOOR = unary("Floor", "floor", None)
CEIL = unary("Ceil", "ceil", None)
ROUND = unary("Round", "rint", None)
RINT = unary("Rint", "rint", None, WIDE_FLOATS)
FLOORDIV = binary(
    "FloorDiv", _floordiv, None, NUMBERS, validate=partial(_check_of_divisor, "FloorDiv")
)
FLOORMOD = binary(
    "FloorMod",
    _floormod,
    _grad_floormod,
    NUMBERS,
    validate=partial(_check_of_divisor, "FloorMod"),
    workspace=_signs,
    may_alias=(0,),  # The divisor is read again.
)


NEXT_AFTER = binary("NextAfter", "nextafter", lambda call, g: [g, OPS["ZerosLike"](g)], WIDE_FLOATS)


# ---------------------------------------------------------------------------- public functions


def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the largest whole number that is not above each element.

    Example:
        >>> import mirrored as mr
        >>> mr.floor([-0.5, 1.5]).numpy()
        array([-1.,  1.], dtype=float32)
    """
    return FLOOR(x)


def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the smallest whole number that is not below each element.

    Example:
        >>> import mirrored as mr
        >>> mr.math.ceil([0.5, 1.5]).numpy()
        array([1., 2.], dtype=float32)
    """
    return CEIL(x)


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the whole number nearest to each element; of two the even one. Integers stay.

    Example:
        >>> import mirrored as mr
        >>> mr.round([0.5, 1.5, 2.5, 2.6]).numpy()
        array([0., 2., 2., 3.], dtype=float32)
    """
    (tensor,) = as_tensors((x,))
    return tensor if tensor.dtype in INTEGERS else ROUND(tensor)


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the whole number nearest to each element; of two the even one.

    Example:
        >>> import mirrored as mr
        >>> mr.math.rint([0.5, 1.5, 2.6]).numpy()
        array([0., 2., 3.], dtype=float32)
    """
    return RINT(x)


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y rounded down, element by element, as `//` does.

    Raises:
        InvalidArgumentError: An integer is divided by 0, on the host.

    Example:
        >>> import mirrored as mr
        >>> mr.math.floordiv([-3, 3], 2).numpy()
        array([-2,  1], dtype=int32)
    """
    return FLOORDIV(x, y)


def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return what `floordiv` leaves, which has the sign of y, as `%` does.

    Raises:
        InvalidArgumentError: An integer is divided by 0, on the host.

    Example:
        >>> import mirrored as mr
        >>> mr.math.floormod([-3, 3], 2).numpy()
        array([1, 1], dtype=int32)
    """
    return FLOORMOD(x, y)


@explained
def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """Return the next number after each of `x1` in the direction of `x2`, as IEEE 754 has it.

    Args:
        x1: Float32 or float64; Python's integers become float32.
        x2: Where to: of that dtype, of a shape that broadcasts. No gradient flows to it.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: Another dtype, or shapes that do not broadcast.

    Example:
        >>> import mirrored as mr
        >>> mr.math.nextafter([1.0, 0.0], 2.0).numpy()
        array([1.0000001e+00, 1.4012985e-45], dtype=float32)
    """
    if not (is_tensor(x1) or is_tensor(x2)):
        x1, x2 = _float(x1), _float(x2)
    return NEXT_AFTER(x1, x2)


def _float(value: Any) -> Any:
    """Return Python's numbers as float32; NumPy's have their dtype."""
    known = isinstance(value, np.ndarray | np.generic)
    return value if known else convert_to_tensor(value, float32)
