"""Arithmetic ops that work element by element, with broadcasting.

Most are one ufunc with an output buffer, in one table of names, ufuncs and gradient rules. Others
are 0 where one operand is 0, whatever the other one is.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mirrored._types import TensorLike
from mirrored.ops.conversion import adopt, as_tensors, convert_to_tensor
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.op import Check, Gradient, Grads, Kernel, Op, OpCall, define_op
from mirrored.ops.shaping import CAST
from mirrored.ops.spec import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    DType,
    TensorSpec,
    broadcast_shapes,
    check_same_dtype,
    float32,
    float64,
    int32,
    int64,
    same_spec,
)
from mirrored.ops.tensor import Operators, Tensor, operators

# ---------------------------------------------------------------------------- one input


def _kernel(of: str | Kernel) -> Kernel:
    """Return a kernel, or for the name of a ufunc of the array module one that calls it."""
    if not isinstance(of, str):
        return of

    def kernel(xp: Any, out: Any, *arrays: Any) -> None:
        getattr(xp, of)(*arrays, out=out)

    return kernel


def unary(
    name: str,
    kernel: str | Kernel,
    gradient: Callable[[OpCall, Tensor], Tensor | None] | None,
    dtypes: frozenset[DType] = FLOATS,
    result: DType | None = None,
    may_alias: tuple[int, ...] = (0,),
) -> Op:
    """Define the op `name` of one input that a kernel, or the ufunc of a name, computes.

    The result is of the input's dtype where no other one is given. `may_alias` is empty where the
    kernel reads the input after it has begun to write.
    """
    rule: Gradient | None = None if gradient is None else lambda call, g: [gradient(call, g)]
    return define_op(
        name=name,
        infer=same_spec if result is None else lambda x: TensorSpec(x.shape, result),
        kernel=_kernel(kernel),
        gradient=rule,
        dtypes=dtypes,
        may_alias=may_alias if result is None else (),
        elementwise=True,
    )


NEG = unary("Neg", "negative", lambda call, g: -g, SIGNED)
# Written over its input, NumPy's takes ten times as long: its loop is not vectorised then.
SIGN = unary("Sign", "sign", lambda call, g: ZEROS_LIKE(g), SIGNED, may_alias=())
ABS = unary("Abs", "absolute", lambda call, g: g * SIGN(call.inputs[0]), SIGNED)


# ---------------------------------------------------------------------------- two inputs


def binary(
    name: str,
    kernel: str | Kernel,
    gradient: Gradient | None,
    dtypes: frozenset[DType] = NUMBERS,
    result: DType | None = None,
    validate: Callable[..., Check | None] | None = None,
    workspace: Callable[..., tuple[TensorSpec, ...]] | None = None,
    may_alias: tuple[int, ...] = (0, 1),
) -> Op:
    """Define the op `name` of two inputs that broadcast.

    Args:
        name: The op's name.
        kernel: What computes it, or the array module's name of the ufunc that does.
        gradient: The rule, whose results have the broadcast shape; None: not differentiable.
        dtypes: Those that the inputs may have.
        result: The dtype of the result; None: that of the inputs.
        validate: What checks the inputs' values; see `Op`.
        workspace: The scratch that the kernel needs.
        may_alias: The inputs that a result of their dtype may be written over.
    """

    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        if x == y and result is None:
            return x
        check_same_dtype(name, x, y)
        return TensorSpec(broadcast_shapes(name, x.shape, y.shape), result or x.dtype)

    return define_op(
        name=name,
        infer=infer,
        kernel=_kernel(kernel),
        gradient=gradient,
        dtypes=dtypes,
        may_alias=may_alias if result is None else (),
        validate=validate,
        workspace=workspace,
        elementwise=workspace is None,
    )


def _grad_mul(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: g * y, lambda: g * x]


def _grad_div(call: OpCall, g: Tensor) -> Grads:
    y = call.inputs[1]
    by_y = g / y
    return [by_y, lambda: -(by_y * call.output)]


def mask_of(spec: TensorSpec) -> TensorSpec:
    """Return the spec of a mask for floats: integers with as many bits."""
    return TensorSpec(spec.shape, int32 if spec.dtype.itemsize == int32.itemsize else int64)


def mask_zeros(xp: Any, x: Any, mask: Any) -> None:
    """Write a mask of bits: none where `x` is 0, all elsewhere."""
    xp.not_equal(x, 0, out=mask)
    xp.negative(mask, out=mask)


def clear_masked(xp: Any, out: Any, mask: Any) -> None:
    """Make 0 of what a mask has no bits for, NaN included.

    A call with `where` takes ten times as long where the mask follows no pattern.
    """
    bits = out.view(mask.dtype)
    xp.bitwise_and(bits, mask, out=bits)


def _no_nan(function: str) -> Kernel:
    """Return the kernel of a ufunc of x and y, but 0 where y is 0."""

    def kernel(xp: Any, out: Any, x: Any, y: Any, *, workspace: Any) -> None:
        kept = workspace[0]
        mask_zeros(xp, y, kept)
        getattr(xp, function)(x, y, out=out)
        clear_masked(xp, out, kept)

    return kernel


def _grad_mul_no_nan(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: MUL_NO_NAN(g, y), lambda: MUL_NO_NAN(x, g)]


def _grad_of_chosen(choose_first: Callable[[Tensor, Tensor], Tensor]) -> Gradient:
    """Return the rule of maximum or minimum: the gradient goes to the operand that was chosen.

    The other one gets 0, also where the gradient is infinite, as in front of a root at 0.
    """

    def gradient(call: OpCall, g: Tensor) -> Grads:
        first = CAST(choose_first(*call.inputs), dtype=g.dtype)
        return [lambda: MUL_NO_NAN(g, first), lambda: MUL_NO_NAN(g, 1.0 - first)]

    return gradient


ADD = binary("AddV2", "add", lambda call, g: [g, g], NUMBERS)
SUB = binary("Sub", "subtract", lambda call, g: [g, lambda: -g], NUMBERS)
MUL = binary("Mul", "multiply", _grad_mul, NUMBERS)
DIV = binary("RealDiv", "divide", _grad_div, FLOATS)
# x * y, but 0 where y is 0, whatever x is.
MUL_NO_NAN = binary(
    "MulNoNan", _no_nan("multiply"), _grad_mul_no_nan, FLOATS, workspace=lambda x, y: (mask_of(y),)
)
MAXIMUM = binary("Maximum", "maximum", _grad_of_chosen(lambda x, y: x >= y), NUMBERS)
MINIMUM = binary("Minimum", "minimum", _grad_of_chosen(lambda x, y: x <= y), NUMBERS)


def _true_divide(x: Any, y: Any) -> Tensor:
    """Return x / y: integers become floats first, of the width that TensorFlow gives them.

    Raises:
        TypeError: One is an integer tensor, and the other is not of its dtype.
    """
    if not any(isinstance(operand, Operators) and operand.dtype.kind in "iu" for operand in (x, y)):
        return DIV(x, y)
    return DIV(*_divided("RealDiv", x, y))


def _divided(op: str, x: Any, y: Any) -> Sequence[Tensor]:
    """Return what is divided, and by what: integers as floats.

    Raises:
        TypeError: The dtypes differ.
    """
    x, y = as_tensors((x, y))
    if x.dtype != y.dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {x.dtype.name} != {y.dtype.name}. Cast one "
            f"of them with mr.cast. [Op:{op}]"
        )
    if x.dtype not in INTEGERS:
        return x, y
    wide = float32 if x.dtype.itemsize <= 2 else float64
    return CAST(x, dtype=wide), CAST(y, dtype=wide)


operators["truediv"] = _true_divide

# What assigning to a variable computes, under TensorFlow's names for it: the new value from the old
# one and the argument.
ASSIGN_ADD = binary("AssignAddVariableOp", "add", None, NUMBERS)
ASSIGN_SUB = binary("AssignSubVariableOp", "subtract", None, NUMBERS)


# ---------------------------------------------------------------------------- public functions


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x + y, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.add([1, 2], 3).numpy()
        array([4, 5], dtype=int32)
    """
    return ADD(x, y)


def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x - y, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.subtract([1, 2], 3).numpy()
        array([-2, -1], dtype=int32)
    """
    return SUB(x, y)


def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x * y, element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.multiply([1, 2], 3).numpy()
        array([3, 6], dtype=int32)
    """
    return MUL(x, y)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y, element by element; integers give floats, as Python's `/` does.

    Those are float64, and float32 for integers of 8 and 16 bits. A tensor of integers is divided
    by its own dtype.

    Raises:
        TypeError: One operand is of integers, and the other has another dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.divide([1.0, 2.0], 4.0).numpy()
        array([0.25, 0.5 ], dtype=float32)
    """
    return _true_divide(*as_tensors((x, y)))


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return x times one number, which takes the dtype of x.

    Args:
        scalar: The number, or a tensor of shape ().
        x: A tensor of any shape.
        name: Accepted for compatibility.

    Raises:
        ValueError: `scalar` is no scalar.

    Example:
        >>> import mirrored as mr
        >>> mr.scalar_mul(2, [1.0, 2.0]).numpy()
        array([2., 4.], dtype=float32)
    """
    (tensor,) = as_tensors((x,))
    factor = convert_to_tensor(scalar, tensor.dtype)
    if factor.ndim:
        raise ValueError(f"Only scalar multiply works, got shape {factor.shape}")
    return MUL(factor, tensor)


def negative(x: TensorLike, name: str | None = None) -> Tensor:
    """Return -x.

    Example:
        >>> import mirrored as mr
        >>> float(mr.negative(2.0))
        -2.0
    """
    return NEG(x)


def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the absolute value of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.abs(-2.0))
        2.0
    """
    return ABS(x)


def sign(x: TensorLike, name: str | None = None) -> Tensor:
    """Return -1, 0 or 1 for each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.sign(-2.0))
        -1.0
    """
    return SIGN(x)


def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return the larger of x and y, element by element; where they are equal the gradient is x's.

    Example:
        >>> import mirrored as mr
        >>> mr.maximum([1, 5], 3).numpy()
        array([3, 5], dtype=int32)
    """
    return MAXIMUM(x, y)


def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return the smaller of x and y, element by element; where they are equal the gradient is x's.

    Example:
        >>> import mirrored as mr
        >>> mr.minimum([1, 5], 3).numpy()
        array([1, 3], dtype=int32)
    """
    return MINIMUM(x, y)


def _xdivy(xp: Any, out: Any, x: Any, y: Any, *, workspace: Any) -> None:
    xp.divide(x, y, out=out)
    _put_zeros(xp, out, x, workspace[0])


def _times(function: str) -> Kernel:
    """Return the kernel of x times a function of y, but x where x is 0."""

    def kernel(xp: Any, out: Any, x: Any, y: Any, *, workspace: Any) -> None:
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


def _grad_div_no_nan(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: DIV_NO_NAN(g, y), lambda: g * DIV_NO_NAN(DIV_NO_NAN(-x, y), y)]


def _grad_xdivy(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: XDIVY(_not_zero(x), y) * g, lambda: XDIVY(-x, y * y) * g]


def _grad_xlogy(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: XLOGY(_not_zero(x), y) * g, lambda: XDIVY(x, y) * g]


def _grad_xlog1py(call: OpCall, g: Tensor) -> Grads:
    x, y = call.inputs
    return [lambda: XLOG1PY(_not_zero(x), y) * g, lambda: XDIVY(x, y + 1.0) * g]


DIV_NO_NAN = binary(
    "DivNoNan", _no_nan("divide"), _grad_div_no_nan, FLOATS, workspace=lambda x, y: (mask_of(y),)
)
XDIVY = binary(
    "Xdivy", _xdivy, _grad_xdivy, FLOATS, workspace=lambda x, y: (mask_of(x),), may_alias=(1,)
)
XLOGY, XLOG1PY = (
    binary(
        name, _times(function), rule, FLOATS, workspace=lambda x, y: (mask_of(x), y), may_alias=(1,)
    )
    for name, function, rule in (
        ("Xlogy", "log", _grad_xlogy),
        ("Xlog1py", "log1p", _grad_xlog1py),
    )
)


# ---------------------------------------------------------------------------- public functions


def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y, element by element, and 0 where y is 0; integers give floats.

    Those are float64, and float32 for integers of 8 and 16 bits.

    Raises:
        TypeError: The dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.math.divide_no_nan([1.0, 2.0], [4.0, 0.0]).numpy()
        array([0.25, 0.  ], dtype=float32)
    """
    return DIV_NO_NAN(*_divided("DivNoNan", x, y))


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x * y, element by element, and 0 where y is 0, also where x is infinite or NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.math.multiply_no_nan([2.0, float("nan")], [3.0, 0.0]).numpy()
        array([6., 0.], dtype=float32)
    """
    return MUL_NO_NAN(x, y)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / x, element by element, and 0 where x is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.math.reciprocal_no_nan([2.0, 0.0]).numpy()
        array([0.5, 0. ], dtype=float32)
    """
    tensor = adopt(x, None)
    return DIV_NO_NAN(convert_to_tensor(1, tensor.dtype), tensor)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y, element by element, and 0 where x is 0, also where y is 0, infinite or NaN.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xdivy([1.0, 0.0], [4.0, 0.0]).numpy()
        array([0.25, 0.  ], dtype=float32)
    """
    return XDIVY(x, y)


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x * log(y), element by element, and 0 where x is 0, as an entropy takes it.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xlogy([2.0, 0.0], [1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return XLOGY(x, y)


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x * log(1 + y), element by element, and 0 where x is 0.

    Example:
        >>> import mirrored as mr
        >>> mr.math.xlog1py([2.0, 0.0], [0.0, -1.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return XLOG1PY(x, y)


_PIECE = 1 << 14  # Elements.

# function(xp, out, x, scratch)
Function = Callable[[Any, Any, Any, tuple[Any, ...]], None]


def piecewise(
    name: str,
    function: Function,
    gradient: Callable[[OpCall, Tensor], Tensor],
    scratch: int,
    devices: tuple[str, ...] = ("GPU", "CPU"),
    dtypes: frozenset[DType] = FLOATS,
) -> Op:
    """Define the op of one input, of floats, that a function of vectors computes.

    It takes many calls of the array module, a piece of the array at a time, whose scratch stays in
    a core's own cache.

    Args:
        name: The op's name.
        function: Writes the result of a vector, of which it may read the input until its end.
        gradient: From the call and the upstream gradient to that of the input.
        scratch: How many vectors the function needs beside.
        devices: As of an `Op`.
        dtypes: The same.
    """

    def workspace(x: TensorSpec) -> tuple[TensorSpec, ...]:
        return (TensorSpec((min(math.prod(x.shape), _PIECE),), x.dtype),) * scratch

    def kernel(xp: Any, out: Any, x: Any, *, workspace: Any) -> None:
        values, result = x.reshape(-1), out.reshape(-1)
        for begin in range(0, values.size, _PIECE):
            part = values[begin : begin + _PIECE]
            vectors = tuple(vector[: part.size] for vector in workspace)
            function(xp, result[begin : begin + _PIECE], part, vectors)

    return define_op(
        name=name,
        infer=same_spec,
        kernel=kernel,
        gradient=lambda call, g: [gradient(call, g)],
        devices=devices,
        dtypes=dtypes,
        workspace=workspace,
        whole=True,
    )
