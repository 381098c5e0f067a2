"""Matrix products.

They are the bulk of a training step's time, so transposes are flags of the product and no copies.
"""

import math
from functools import partial
from typing import Any

from mirrored._arguments import explained
from mirrored._types import DTypeLike, TensorLike
from mirrored.backends.product_settings import product
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import as_tensors
from mirrored.ops.op import Grads, OpCall, define_op
from mirrored.ops.spec import (
    FLOATS_AND_INDICES,
    TensorSpec,
    as_dtype,
    broadcast_shapes,
    check_same_dtype,
    shape_text,
)
from mirrored.ops.tensor import Tensor


def _infer(
    name: str, a: TensorSpec, b: TensorSpec, *, transpose_a: bool, transpose_b: bool
) -> TensorSpec:
    check_same_dtype(name, a, b)
    if min(len(a.shape), len(b.shape)) < 2 or (name == "MatMul" and len(b.shape) != 2):
        raise InvalidArgumentError(
            f"In[0] and In[1] must be matrices, or batches of them. Received: "
            f"{shape_text(a.shape)} and {shape_text(b.shape)} [Op:{name}]"
        )
    rows, inner = a.shape[-2:][:: -1 if transpose_a else 1]
    inner_b, columns = b.shape[-2:][:: -1 if transpose_b else 1]
    if inner != inner_b:
        raise InvalidArgumentError(
            f"Matrix size-incompatible: In[0]: {shape_text(a.shape)}, In[1]: "
            f"{shape_text(b.shape)} [Op:{name}]"
        )
    batch = broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    return TensorSpec((*batch, rows, columns), a.dtype)


def _matmul(xp: Any, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    product(xp, a, b, out)


def _grad_matmul(call: OpCall, g: Tensor) -> Grads:
    a, b = call.inputs
    ta, tb = call.attrs["transpose_a"], call.attrs["transpose_b"]
    return [
        lambda: _product(b, g, tb, True) if ta else _product(g, b, False, not tb),
        lambda: _product(g, a, True, ta) if tb else _product(a, g, not ta, False),
    ]


def _flops(out: TensorSpec, a: TensorSpec, *_: TensorSpec, transpose_a: bool, **__: bool) -> int:
    return int(2 * math.prod(out.shape) * a.shape[-2 if transpose_a else -1])


MATMUL, BATCH_MATMUL = (
    define_op(
        name=name,
        infer=partial(_infer, name),
        kernel=_matmul,
        gradient=_grad_matmul,
        dtypes=FLOATS_AND_INDICES,
        flops=_flops,
    )
    for name in ("MatMul", "BatchMatMulV2")
)


@explained
def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the matrix product of `a` and `b`; leading axes are batches and broadcast.

    Args:
        a: A tensor of shape (..., n, k), or (..., k, n) with `transpose_a`.
        b: A tensor of shape (..., k, m), or (..., m, k) with `transpose_b`.
        transpose_a: Whether to transpose the last two axes of `a` first; nothing is copied.
        transpose_b: The same for `b`.
        adjoint_a: The same as `transpose_a`, since numbers are real.
        adjoint_b: The same for `b`.
        a_is_sparse: Accepted for compatibility: zeros are multiplied as other numbers are.
        b_is_sparse: The same for `b`.
        output_type: None, or the dtype that `a` and `b` have.
        grad_a: Accepted for compatibility.
        grad_b: The same for `b`.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The ranks, sizes or dtypes do not fit.
        ValueError: A matrix is to be transposed and adjoint; or `output_type` is another dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.matmul([[1, 2], [3, 4]], [[5], [6]]).numpy()
        array([[17],
               [39]], dtype=int32)
    """
    for which, both in (("a", transpose_a and adjoint_a), ("b", transpose_b and adjoint_b)):
        if both:
            raise ValueError(
                f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. Received "
                f"`transpose_{which}`=True, `adjoint_{which}`=True."
            )
    a, b = as_tensors((a, b))
    if output_type is not None and as_dtype(output_type) != a.dtype:
        raise ValueError(
            "`output_type` must be the dtype of the matrices. Received: "
            f"output_type={output_type} for {a.dtype.name}. Cast the product with mr.cast."
        )
    return _product(a, b, bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b))


def _product(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Tensor:
    op = MATMUL if a.ndim == b.ndim == 2 else BATCH_MATMUL
    return op(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
