"""Functions of one number that take many calls of the array module, a piece of the array at a time.

The scratch that they need is that of a piece, and stays in a core's own cache from call to call.
"""

import math
from collections.abc import Callable
from typing import Any

from mirrored.ops.op import Op, OpCall, register
from mirrored.ops.spec import FLOATS, DType, TensorSpec, same_spec
from mirrored.ops.tensor import Tensor

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

    def kernel(xp: Any, out: Any, x: Any, *, workspace: tuple[Any, ...]) -> None:
        values, result = x.reshape(-1), out.reshape(-1)
        for begin in range(0, values.size, _PIECE):
            part = values[begin : begin + _PIECE]
            vectors = tuple(vector[: part.size] for vector in workspace)
            function(xp, result[begin : begin + _PIECE], part, vectors)

    return register(
        Op(
            name=name,
            infer=same_spec,
            kernel=kernel,
            gradient=lambda call, g: [gradient(call, g)],
            devices=devices,
            dtypes=dtypes,
            workspace=workspace,
            whole=True,
        )
    )
