"""Quotients, products and logarithms that are 0 where one operand is 0, whatever the other one is.

Elsewhere they are what their names say; the gradients are TensorFlow's, also at those zeros.
"""

from typing import Any

from mirrored.ops.conversion import adopt, as_tensors, convert_to_tensor
from mirrored.ops.elementwise import MUL_NO_NAN, binary, clear_masked, mask_of, mask_zeros, when
from mirrored.ops.op import Kernel, OpCall
from mirrored.ops.shaping import CAST
from mirrored.ops.spec import FLOATS, INTEGERS, float32, float64
from mirrored.ops.tensor import Tensor

Pair = tuple[Tensor | None, Tensor | None]


def _div_no_nan(xp: Any, out: Any, x: Any, y: Any, *, workspace: tuple[Any, ...]) -> None:
    kept = workspace[0]
    mask_zeros(xp, y, kept)
    xp.divide(x, y, out=out)
    clear_masked(xp, out, kept)


def _xdivy(xp: Any, out: Any, x: Any, y: Any, *, workspace: tuple[Any, ...]) -> None:
    xp.divide(x, y, out=out)
    _put_zeros(xp, out, x, workspace[0])


def _times(function: str) -> Kernel:
    """Return the kernel of x times a function of y, but x where x is 0."""

    def kernel(xp: Any, out: Any, x: Any, y: Any, *, workspace: tuple[Any, ...]) -> None:
        mask, factor = workspace
        getattr(xp, function)(y, out=factor)
        xp.multiply(x, factor, out=out)
        _put_zeros(xp, out, x, mask)

    return kernel


def _put_zeros(xp: Any, out: Any, x: Any, mask: Any) -> None:
    """Write the zeros of `x`, which have signs, over what is in their places."""
    mask_zeros(xp, x, mask)
    clear_masked(xp, out, mask)
    xp.invert(mask, out=mask)
    xp.bitwise_and(mask, x.view(mask.dtype), out=mask)
    bits = out.view(mask.dtype)
    xp.bitwise_or(bits, mask, out=bits)


def _not_zero(x: Tensor) -> Tensor:
    """Return 1 where `x` is not 0, and 0 where it is."""
    return CAST(x != 0.0, dtype=x.dtype)


def _grad_div_no_nan(call: OpCall, g: Tensor) -> Pair:
    x, y = call.inputs
    return (
        when(call.needs(0), lambda: DIV_NO_NAN(g, y)),
        when(call.needs(1), lambda: g * DIV_NO_NAN(DIV_NO_NAN(-x, y), y)),
    )


def _grad_xdivy(call: OpCall, g: Tensor) -> Pair:
    x, y = call.inputs
    return (
        when(call.needs(0), lambda: XDIVY(_not_zero(x), y) * g),
        when(call.needs(1), lambda: XDIVY(-x, y * y) * g),
    )


def _grad_xlogy(call: OpCall, g: Tensor) -> Pair:
    x, y = call.inputs
    return (
        when(call.needs(0), lambda: XLOGY(_not_zero(x), y) * g),
        when(call.needs(1), lambda: XDIVY(x, y) * g),
    )


def _grad_xlog1py(call: OpCall, g: Tensor) -> Pair:
    x, y = call.inputs
    return (
        when(call.needs(0), lambda: XLOG1PY(_not_zero(x), y) * g),
        when(call.needs(1), lambda: XDIVY(x, y + 1.0) * g),
    )


DIV_NO_NAN = binary(
    "DivNoNan", _div_no_nan, _grad_div_no_nan, FLOATS, workspace=lambda x, y: (mask_of(y),)
)
XDIVY = binary(
    "Xdivy",
    _xdivy,
    _grad_xdivy,
    FLOATS,
    workspace=lambda x, y: (mask_of(x),),
    may_alias=(1,),
)
XLOGY, XLOG1PY = (
    binary(
        name,
        _times(function),
        rule,
        FLOATS,
        workspace=lambda x, y: (mask_of(x), y),
        may_alias=(1,),
    )
    for name, function, rule in (
        ("Xlogy", "log", _grad_xlogy),
        ("Xlog1py", "log1p", _grad_xlog1py),
    )
)


# ---------------------------------------------------------------------------- public functions


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y, element by element, and 0 where y is 0; integers give floats.

    Those are float64, and float32 for integers of 8 and 16 bits.

    Raises:
        TypeError: The dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.math.divide_no_nan([1.0, 2.0], [4.0, 0.0]).numpy()
        array([0.25, 0.  ], dtype=float32)
    """
    x, y = as_tensors((x, y))
    if x.dtype != y.dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {x.dtype.name} != {y.dtype.name}. Cast one "
            "of them with mr.cast. [Op:DivNoNan]"
        )
    if x.dtype in INTEGERS:
        wide = float32 if x.dtype.itemsize <= 2 else float64
        x, y = CAST(x, dtype=wide), CAST(y, dtype=wide)
    return DIV_NO_NAN(x, y)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x * y, element by element, and 0 where y is 0, also where x is infinite or NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.math.multiply_no_nan([2.0, float("nan")], [3.0, 0.0]).numpy()
        array([6., 0.], dtype=float32)
    """
    return MUL_NO_NAN(x, y)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """Return 1 / x, element by element, and 0 where x is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.math.reciprocal_no_nan([2.0, 0.0]).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    tensor = adopt(x, None)
    return DIV_NO_NAN(convert_to_tensor(1, tensor.dtype), tensor)


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y, element by element, and 0 where x is 0, also where y is 0, infinite or NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xdivy([1.0, 0.0], [4.0, 0.0]).numpy()
        array([0.25, 0.  ], dtype=float32)
    """
    return XDIVY(x, y)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x * log(y), element by element, and 0 where x is 0, as an entropy takes it.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xlogy([2.0, 0.0], [1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return XLOGY(x, y)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x * log(1 + y), element by element, and 0 where x is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xlog1py([2.0, 0.0], [0.0, -1.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return XLOG1PY(x, y)
