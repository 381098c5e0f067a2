"""Elementwise ops of the host as one loop in C, of the expressions that cards compute.

Only ops of which IEEE 754 fixes each bit, in NumPy's order, are in such a loop: the bits are those
of NumPy's calls. Of several NaN it is open which one is the result.
"""

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.stream_backend import Fusion, Shape

# Of two zeros NumPy chooses the second one on some processors alone, as the expressions do.
_SECOND_ZERO = (
    np.signbit(np.maximum(np.zeros(99), -np.zeros(99))).all()
    and not np.signbit(np.minimum(-np.zeros(99), np.zeros(99))).any()
)
_NAMES = frozenset(
    {
        *("Neg", "Abs", "Square", "Sqrt", "SqrtGrad", "AddV2", "Sub", "Mul", "RealDiv", "AddN"),
        *("MulNoNan", "DivNoNan", "Xdivy", "Rsqrt", "Sign"),
        *("SquaredDifference", "AssignAddVariableOp", "AssignSubVariableOp", "BiasAdd", "_Send"),
        *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "SelectV2"),
        *("LogicalAnd", "LogicalOr", "LogicalNot", "IsFinite", "IsNan", "IsInf", "Cast"),
        *("Relu", "ReluGrad", "SigmoidGrad", "TanhGrad", "Softsign", "BroadcastTo", "Reciprocal"),
        *(("Maximum", "Minimum") if _SECOND_ZERO else ()),
    }
)
_TYPES = {"float32": "float", "float64": "double", "bool": "_Bool"}

# Arrays are the same or apart, so an element is read and written by its own turn of the loop alone.
_PRELUDE = """
#if __FLT_EVAL_METHOD__
#error "Floats are computed with more bits than they have."
#endif
#ifdef __clang__
#define ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ALONE _Pragma("GCC ivdep")
#endif
typedef long long i64;
#define bool _Bool
#define plus(a, b) ((a) + (b))
#define minus(a, b) ((a) - (b))
#define times(a, b) ((a) * (b))
float sqrtf(float);
double sqrt(double);
float fabsf(float);
double fabs(double);

void fused(const i64 *p) {
    const i64 rows = p[0], columns = p[1];
"""
_LOOP = """
    for (i64 row = 0; row < rows; ++row) {
        ALONE
        for (i64 column = 0; column < columns; ++column) {
            const i64 i = row * columns + column;
"""


class HostFusion(NamedTuple):
    """A loop for fused ops.

    Attributes:
        text: Its text, in which sizes are parameters.
        columns: How many elements of the results an input repeats for, or is repeated after.
        whole: For each input whether it has as many elements as the results.
    """

    text: str
    columns: int
    whole: tuple[bool, ...]

    def arguments(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return what the kernel is called with; None: it would read what it has written.

        Args:
            inputs: The arrays of the inputs, of which parts of the whole ones may be given.
            outputs: Those of the results, as long.
        """
        size = outputs[0].size
        columns = self.columns if self.columns < size else size
        places = [array.ctypes.data for array in (*inputs, *outputs)]
        for target, output in zip(places[len(inputs) :], outputs, strict=True):
            for place, array, whole in zip(places, inputs, self.whole, strict=False):
                same = whole and place == target and array.nbytes == output.nbytes
                if not same and place < target + output.nbytes and target < place + array.nbytes:
                    return None
        return (ctypes.c_longlong * (2 + len(places)))(size // columns, columns, *places)


def fuses(name: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Return whether an op of inputs and a result of some dtypes may be one of a loop."""
    return name in _NAMES and all(dtype.name in _TYPES for dtype in dtypes)


@lru_cache(maxsize=4096)
def host_fusion(fusion: Fusion) -> HostFusion | None:
    """Return the loop for fused ops; None: an input is repeated along several axes.

    Args:
        fusion: The ops.
    """
    size = math.prod(fusion.ops[0].shape)
    indices: dict[int, str] = {}
    columns = set()
    for op in fusion.ops:
        for number in op.inputs:
            if number < len(fusion.inputs):
                index, length = _index(fusion.inputs[number][0], op.shape)
                if indices.setdefault(number, index) != index or not index:
                    return None
                columns |= {length} if index in ("row", "column") else set()
    if len(columns) > 1:
        return None
    pointers: list[str] = []
    loads: list[str] = []
    body: list[str] = []
    stores: list[str] = []
    for number, index in indices.items():
        kind = _TYPES[fusion.inputs[number][1].name]
        pointers.append(f"const {kind} *x{number} = (const {kind} *)p[{number + 2}];")
        load = f"const {kind} a{number} = x{number}[{index}];"
        (pointers if index == "0" else loads).append(load)
    count = len(fusion.inputs)
    for number, op in enumerate(fusion.ops):
        operands = [f"a{i}" if i < count else f"v{i - count}" for i in op.inputs]
        kind = _TYPES[op.dtype.name]
        body.append(f"const {kind} v{number} = {EXPRESSIONS[op.name](operands, kind)};")
    for place, number in enumerate(fusion.outputs):
        kind = _TYPES[fusion.ops[number].dtype.name]
        pointers.append(f"{kind} *y{place} = ({kind} *)p[{count + place + 2}];")
        stores.append(f"y{place}[i] = v{number};")
    lines = "".join(f"            {line}\n" for line in (*loads, *body, *stores))
    before = "".join(f"    {line}\n" for line in pointers)
    whole = tuple(indices.get(number) == "i" for number in range(count))
    text = f"{_PRELUDE}{before}{_LOOP}{lines}        }}\n    }}\n}}\n"
    return HostFusion(text, columns.pop() if columns else size, whole)


def _index(shape: Shape, result: Shape) -> tuple[str, int]:
    """Return the index of an input in the loop, and how many columns that needs; "": none."""
    size, full = math.prod(shape), math.prod(result)
    if size == full:
        return "i", full
    if size == 1:
        return "0", full
    own = (1,) * (len(result) - len(shape)) + tuple(shape)
    first = next(i for i, length in enumerate(own) if length > 1)
    if own[first:] == result[first:]:
        return "column", size
    last = next(i for i in range(len(own), 0, -1) if own[i - 1] > 1)
    return ("row", full // size) if own[:last] == result[:last] else ("", 0)
