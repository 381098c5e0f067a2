"""How an op becomes one that NumPy's LAPACK computes, matrix by matrix.

That is on the CPU and on simulated GPUs; cards have kernels of their own for them.

A few small matrices at a time, so that what NumPy allocates beside the result stays small.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Gradient, Op, define_op
from mirrored.ops.spec import WIDE_FLOATS, Shape, TensorSpec, check_same_dtype, shape_text
from mirrored.ops.tensor import Tensor

_CHUNK = 1 << 11  # Elements whose copies in NumPy take a quarter of what an op may have.

Compute = Callable[..., Any]


def define(
    name: str,
    shape: Callable[..., Shape],
    compute: Compute,
    gradient: Gradient,
    failure: str = "The matrix could not be decomposed.",
    square: bool = True,
) -> Op:
    """Define an op on batches of matrices, of floats.

    Args:
        name: The op's name.
        shape: From the inputs' last two sizes and the attributes to the shape of what one matrix
            gives, or raises.
        compute: From arrays of matrices and the attributes to an array of what they give.
        gradient: The gradient rule.
        failure: What the error says where LAPACK, or a card, has no result for a matrix.
        square: Whether the matrices of the first input are square.
    """

    def infer(*specs: TensorSpec, **attrs: Any) -> TensorSpec:
        check_same_dtype(name, *specs)
        for spec in specs:
            if len(spec.shape) < 2:
                raise InvalidArgumentError(
                    f"Input matrices must have rank >= 2, got {shape_text(spec.shape)} [Op:{name}]"
                )
        first = specs[0].shape
        if square and first[-1] != first[-2]:
            raise InvalidArgumentError(
                f"Input matrix must be square, got {shape_text(first[-2:])} [Op:{name}]"
            )
        if any(spec.shape[:-2] != first[:-2] for spec in specs):
            texts = ", ".join(shape_text(spec.shape) for spec in specs)
            raise InvalidArgumentError(
                f"All input tensors must have the same outer dimensions. Received: {texts} "
                f"[Op:{name}]"
            )
        return TensorSpec(
            (*first[:-2], *shape(*(spec.shape[-2:] for spec in specs), **attrs)), specs[0].dtype
        )

    def kernel(xp: Any, out: Any, *arrays: Any, **attrs: Any) -> None:
        count = math.prod(arrays[0].shape[:-2])
        if not out.size:
            return
        batch = [array.reshape(count, *array.shape[-2:]) for array in arrays]
        results = out.reshape(count, *out.shape[arrays[0].ndim - 2 :])
        step = max(1, _CHUNK // max(1, *(stack[0].size for stack in (*batch, results))))
        with np.errstate(all="ignore"):
            for begin in range(0, count, step):
                part = [stack[begin : begin + step] for stack in batch]
                try:
                    results[begin : begin + step] = compute(*part, **attrs)
                except np.linalg.LinAlgError:
                    raise InvalidArgumentError(f"{failure} [Op:{name}]") from None

    return define_op(
        name=name,
        infer=infer,
        kernel=kernel,
        gradient=gradient,
        dtypes=WIDE_FLOATS,
        whole=True,
        failure=failure,
    )


def nan_where(bad: Any, compute: Compute, x: Any, *others: Any) -> Any:
    """Return what matrices give, and NaN for the bad ones, which LAPACK is not asked about.

    It passes over a NaN where it looks for the largest element, and would give numbers.
    """
    if not bad.any():
        return compute(x, *others)
    result = compute(np.where(bad[:, None, None], np.eye(*x.shape[-2:], dtype=x.dtype), x), *others)
    result[bad] = np.nan
    return result


def transposed(x: Any) -> Any:
    """Return a view of matrices, or a tensor of them, with rows and columns exchanged."""
    return x.swapaxes(-1, -2)


def as_columns(x: Tensor) -> Tensor:
    """Return numbers, one a matrix, as matrices of one element."""
    return x[..., None, None]
