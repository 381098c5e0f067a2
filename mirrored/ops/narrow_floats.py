"""Floats of 16 bits where no hardware computes with them: in float32, and rounded once.

Products and sums thus accumulate in float32. What moves values has kernels of its own for them.
"""

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mirrored._contexts import Within
from mirrored.backends import Backend
from mirrored.ops.spec import DType, TensorSpec, check_dtype, float32, is_bfloat16, is_narrow
from mirrored.ops.tensor import Tensor, operators
from mirrored.ops.tensor_views import Uncast

if TYPE_CHECKING:
    from mirrored.ops.op import Op

# They move values and compute nothing, so their own kernels serve every dtype. That of FloorDiv
# rounds the quotient before it rounds it down, as TensorFlow's does.
_OWN = frozenset(
    {
        *("BroadcastTo", "Cast", "ConcatV2", "FloorDiv", "GatherV2", "Pack", "SelectV2"),
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
        >>> from mirrored.ops.narrow_floats import autocast
        >>> with autocast(mr.bfloat16):
        ...     (mr.ones((2,)) + mr.ones((2,), mr.bfloat16)).dtype.name
        'bfloat16'
    """
    return Within(_autocast, dtype)


def admitted(op: "Op", tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return what an op takes of tensors of which some are of no dtype that it takes directly.

    Args:
        op: The op.
        tensors: Its arguments.

    Raises:
        InvalidArgumentError: It takes no tensors of such a dtype.
    """
    tensors = of_one_width(tensors)
    check_dtype(op.name, op.dtypes, *(tensor.spec for tensor in tensors))
    return tuple(tensors)


def of_one_width(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return tensors, those of float32 rounded where `autocast` says so and one of them is."""
    narrow = _autocast.get()
    if narrow is None or all(tensor.dtype != narrow for tensor in tensors):
        return tensors
    cast = operators["Cast"]
    return [
        cast(x, dtype=narrow) if x.dtype == float32 and not isinstance(x, Uncast) else x
        for x in tensors
    ]


@functools.cache
def widened(op: "Op") -> "Op":
    """Return an op that takes floats of 16 bits, and computes in float32."""
    if op.kernel is None or op.shape_only or op.name in _OWN:
        return op
    inner, inner_workspace = op.kernel, op.workspace

    def widen(spec: TensorSpec) -> TensorSpec:
        return TensorSpec(spec.shape, float32) if is_narrow(spec.dtype) else spec

    def workspace(*specs: TensorSpec, **attrs: Any) -> tuple[TensorSpec, ...]:
        ends = (*specs, op.infer(*specs, **attrs))
        copies = tuple(widen(spec) for spec in ends if is_narrow(spec.dtype))
        if inner_workspace is None:
            return copies
        return (*copies, *inner_workspace(*(widen(spec) for spec in specs), **attrs))

    def kernel(xp: Any, out: Any, *arrays: Any, workspace: Any, **attrs: Any) -> None:
        scratch = iter(workspace)
        wide = []
        for array in arrays:
            wide.append(next(scratch) if is_narrow(array.dtype) else array)
            if wide[-1] is not array:
                xp.copyto(wide[-1], array)
        result = next(scratch) if is_narrow(out.dtype) else out
        if inner_workspace is not None:
            attrs["workspace"] = tuple(scratch)
        inner(xp, result, *wide, **attrs)
        if result is not out:
            xp.copyto(out, result, casting="same_kind")

    # In pieces there would be no place for the copies, and what an op lowers to is in one dtype.
    return replace(op, kernel=kernel, workspace=workspace, elementwise=False, lower=None)


def suited(op: "Op", specs: Sequence[TensorSpec], backend: Backend) -> "Op":
    """Return what computes an op of such inputs: NumPy has no kernels for narrow floats.

    Args:
        op: The op.
        specs: Those of its inputs.
        backend: Of the device that computes it.
    """
    narrow = backend.host_readable and any(is_narrow(spec.dtype) for spec in specs)
    return widened(op) if narrow and op.name not in backend.kernels else op


def steps_below_one(dtype: DType) -> int:
    """Return in how many even steps floats of 16 bits are drawn, as TensorFlow does: none is 1.

    Args:
        dtype: Theirs.
    """
    return 1 << (7 if is_bfloat16(dtype) else 10)  # As many as they have from 1 to 2.


def evenly(numbers: Tensor, dtype: DType) -> Tensor:
    """Return the floats of 16 bits, evenly from [0, 1), that integers stand for.

    Args:
        numbers: Integers from 0 to below `steps_below_one(dtype)`.
        dtype: That of the floats.
    """
    return operators["Mul"](operators["Cast"](numbers, dtype=dtype), 1.0 / steps_below_one(dtype))
