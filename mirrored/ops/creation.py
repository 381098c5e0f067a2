"""Ops that make tensors from a shape and a value.

`constant`, which copies values from the host, is the dispatch module's, since every op needs it.
"""

from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.op import OPS, define_op
from mirrored.ops.spec import DType, Shape, TensorSpec, as_dtype, as_shape, float32, same_spec
from mirrored.ops.tensor import Tensor


def _infer_fill(*, shape: Shape, value: Any, dtype: DType) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _fill(xp: Any, out: Any, *, shape: Shape, value: Any, dtype: DType) -> None:
    xp.copyto(out, value, casting="unsafe")


FILL = define_op(name="Fill", infer=_infer_fill, kernel=_fill)


ZEROS_LIKE, ONES_LIKE = (
    define_op(
        name=name,
        infer=same_spec,
        kernel=lambda xp, out, x, value=value: xp.copyto(out, value, casting="unsafe"),
        shape_only=True,
    )
    for name, value in (("ZerosLike", 0), ("OnesLike", 1))
)


def zeros(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """Return a tensor of zeros.

    Example:
        >>> import mirrored as mr
        >>> mr.zeros((2,)).numpy()
        array([0., 0.], dtype=float32)
    """
    return FILL(shape=as_shape(shape), value=0, dtype=as_dtype(dtype))


def ones(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """Return a tensor of ones.

    Example:
        >>> import mirrored as mr
        >>> mr.ones((2,), mr.int32).numpy()
        array([1, 1], dtype=int32)
    """
    return FILL(shape=as_shape(shape), value=1, dtype=as_dtype(dtype))


def fill(dims: ShapeLike, value: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor of shape `dims` whose every element is the scalar `value`.

    Raises:
        ValueError: `value` is not a scalar.

    Example:
        >>> import mirrored as mr
        >>> mr.fill((2,), 9).numpy()
        array([9, 9], dtype=int32)
    """
    scalar = adopt(value, None)
    if scalar.shape:
        raise ValueError(f"fill takes a scalar value. Received: shape {scalar.shape}")
    if is_tensor(value):  # It has a gradient, and in a recorded function no value yet.
        return OPS["BroadcastTo"](scalar, shape=as_shape(dims))
    return FILL(shape=as_shape(dims), value=scalar.numpy().item(), dtype=scalar.dtype)


def zeros_like(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Return zeros of the shape of `input`, and of its dtype unless another one is given.

    Example:
        >>> import mirrored as mr
        >>> mr.zeros_like([1.0, 2.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return ZEROS_LIKE(input) if dtype is None else zeros(adopt(input, None).shape, dtype)


def ones_like(input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return ones of the shape of `input`, and of its dtype unless another one is given.

    Example:
        >>> import mirrored as mr
        >>> mr.ones_like([1.0, 2.0]).numpy()
        array([1., 1.], dtype=float32)
    """
    return ONES_LIKE(input) if dtype is None else ones(adopt(input, None).shape, dtype)


def count_up_into(xp: Any, out: Any) -> None:
    """Write 0, 1, 2, ... into an array of a kernel's."""
    flat = out.reshape(-1)
    xp.copyto(flat, 1)
    xp.copyto(flat[:1], 0)
    xp.cumsum(flat, out=flat)


explain_functions(__name__, all_but="count_up_into")
