"""bfloat16 where no hardware computes with it: every op computes in float32 and rounds once.

Products and sums thus accumulate in float32. Nothing here runs before somebody asks for bfloat16.
"""

import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from mirrored._contexts import Within
from mirrored.backends import Backend
from mirrored.devices import place
from mirrored.ops import dispatch
from mirrored.ops.conversion import as_tensors
from mirrored.ops.op import Op, set_executor
from mirrored.ops.shaping import CAST
from mirrored.ops.spec import DType, TensorSpec, float32, is_bfloat16, on_bfloat16
from mirrored.ops.tensor import Tensor

# They move values and compute nothing, so their own kernels serve every dtype.
_MOVES = frozenset(
    {
        *("BroadcastTo", "Cast", "ConcatV2", "GatherV2", "Pack", "SelectV2"),
        *(
            "StridedSlice",
            "StridedSliceGrad",
            "TensorScatterUpdate",
            "TensorStridedSliceUpdate",
            "Transpose",
        ),
    }
)

# The dtype that float32 takes beside tensors of it, in the layer that is running; None: an error.
_autocast: ContextVar[DType | None] = ContextVar("mirrored_autocast", default=None)
# Returns it.
autocast_dtype: Callable[[], DType | None] = _autocast.get


def autocast(dtype: DType | None) -> Within:
    """Within this context round float32 tensors, such as weights, beside tensors of a dtype.

    Args:
        dtype: Bfloat16; None: tensors of two dtypes in one op are an error, as they are elsewhere.

    Example:
        >>> import mirrored as mr
        >>> from mirrored.ops.host_bfloat16 import autocast
        >>> with autocast(mr.bfloat16):
        ...     (mr.ones((2,)) + mr.ones((2,), mr.bfloat16)).dtype.name
        'bfloat16'
    """
    return Within(_autocast, dtype)


@functools.cache
def widened(op: Op, narrow: DType) -> Op:
    """Return an op that takes inputs of a narrow dtype, and computes in float32."""
    if op.kernel is None or op.shape_only or op.name in _MOVES:
        return op
    inner, inner_workspace = op.kernel, op.workspace

    def widen(spec: TensorSpec) -> TensorSpec:
        return TensorSpec(spec.shape, float32) if spec.dtype == narrow else spec

    def workspace(*specs: TensorSpec, **attrs: Any) -> tuple[TensorSpec, ...]:
        ends = (*specs, op.infer(*specs, **attrs))
        copies = tuple(widen(each) for each in ends if each.dtype == narrow)
        if inner_workspace is None:
            return copies
        return (*copies, *inner_workspace(*(widen(each) for each in specs), **attrs))

    def kernel(xp: Any, out: Any, *arrays: Any, workspace: tuple[Any, ...], **attrs: Any) -> None:
        scratch = iter(workspace)
        wide = []
        for array in arrays:
            wide.append(next(scratch) if array.dtype == narrow else array)
            if wide[-1] is not array:
                xp.copyto(wide[-1], array)
        result = next(scratch) if out.dtype == narrow else out
        if inner_workspace is not None:
            attrs["workspace"] = tuple(scratch)
        inner(xp, result, *wide, **attrs)
        if result is not out:
            xp.copyto(out, result)

    # In pieces there would be no place for the copies, and what an op lowers to is in one dtype.
    return replace(op, kernel=kernel, workspace=workspace, elementwise=False, lower=None)


def suited(op: Op, dtype: DType, backend: Backend) -> Op:
    """Return what computes an op of a dtype: only the host has no kernels for bfloat16."""
    return widened(op, dtype) if backend.host_readable and is_bfloat16(dtype) else op


def _compute_widened(narrow: DType) -> None:
    """From now on let ops on tensors of a narrow dtype be computed as above on the host."""

    def execute(op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Tensor:
        tensors = as_tensors(inputs)
        if any(each.dtype == narrow for each in tensors):
            if _autocast.get() == narrow:
                tensors = tuple(
                    CAST(each, dtype=narrow) if each.dtype == float32 else each for each in tensors
                )
            op = suited(op, narrow, place(op.name, op.devices).backend)
        return dispatch.execute(op, tensors, attrs)

    set_executor(execute)


on_bfloat16(_compute_widened)
