"""Elementwise ops of the host as one loop in C, of the expressions that cards compute.

In such a loop are only ops of which IEEE 754 fixes each bit, in NumPy's order, and sums over the
first axes, which NumPy adds row by row: the bits are those of NumPy's calls. Of several NaN it is
open which one is the result.
"""

import ctypes
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.stream_backend import SUMS, Fusion, Shape

# Of two zeros NumPy chooses the second one on some processors alone, as the expressions do.
_SECOND_ZERO = (
    np.signbit(np.maximum(np.zeros(99), -np.zeros(99))).all()
    and not np.signbit(np.minimum(-np.zeros(99), np.zeros(99))).any()
)
# What NumPy adds the first row to: two negative zeros tell, as -0.0 + x is always x.
_FIRST = "-0.0" if np.signbit(np.add.reduce(-np.zeros((2, 2)), axis=0)).all() else "0.0"
_NAMES = frozenset(
    {
        *("Neg", "Abs", "Square", "Sqrt", "SqrtGrad", "AddV2", "Sub", "Mul", "RealDiv", "AddN"),
        *("MulNoNan", "DivNoNan", "Xdivy", "Rsqrt", "Sign"),
        *("SquaredDifference", "AssignAddVariableOp", "AssignSubVariableOp", "BiasAdd", "_Send"),
        *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "SelectV2"),
        *("LogicalAnd", "LogicalOr", "LogicalNot", "IsFinite", "IsNan", "IsInf", "Cast"),
        *("Relu", "ReluGrad", "SigmoidGrad", "TanhGrad", "Softsign", "BroadcastTo", "Reciprocal"),
        *(("Maximum", "Minimum") if _SECOND_ZERO else ()),
        *SUMS,
    }
)
_TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(bool): "_Bool"}

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
_ROW = "for (i64 column = 0; column < columns; ++column)"
_LOOP = f"""
    for (i64 row = 0; row < rows; ++row) {{
        ALONE
        {_ROW} {{
            const i64 i = row * columns + column;
"""


class HostFusion(NamedTuple):
    """A loop for fused ops.

    Attributes:
        text: Its text, in which sizes are parameters.
        size: How many elements it computes of each op.
        columns: How many of them an input repeats for, or is repeated after, or are added to a sum.
        whole: For each input whether it has as many elements.
        sums: For each result whether it is a sum, of one row.
    """

    text: str
    size: int
    columns: int
    whole: tuple[bool, ...]
    sums: tuple[bool, ...]

    def arguments(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return what the kernel is called with; None: it would read what it has written.

        Args:
            inputs: The arrays of the inputs, of which parts of the whole ones may be given.
            outputs: Those of the results, as long.
        """
        parts = (array.size for array, is_sum in zip(outputs, self.sums, strict=True) if not is_sum)
        size = next(parts, self.size)
        columns = min(self.columns, size)
        places = [array.ctypes.data for array in (*inputs, *outputs)]
        targets = places[len(inputs) :]
        for target, output, is_sum in zip(targets, outputs, self.sums, strict=True):
            for place, array, whole in zip(places, inputs, self.whole, strict=False):
                same = whole and not is_sum and place == target and array.nbytes == output.nbytes
                if not same and place < target + output.nbytes and target < place + array.nbytes:
                    return None
        return (ctypes.c_longlong * (2 + len(places)))(size // columns, columns, *places)


def fuses(name: str, dtypes: Iterable[np.dtype[Any]]) -> bool:
    """Return whether an op of inputs and a result of some dtypes may be one of a loop."""
    return name in _NAMES and _TYPES.keys() >= {*dtypes}


_Key = TypeVar("_Key")


class Indices(Generic[_Key]):
    """Where a loop reads its inputs.

    Attributes:
        of: For each input its index: "i", that of an element, its "row" or "column", or "0".
        columns: How many elements a row has; 0: the loop has no rows.
    """

    def __init__(self) -> None:
        self.of: dict[_Key, str] = {}
        self.columns = 0

    def add(self, inputs: Iterable[tuple[_Key, Shape]], shape: Shape, columns: int = 0) -> bool:
        """Note what an op reads, and return whether a loop of the earlier ones can compute it.

        Args:
            inputs: The inputs with their shapes.
            shape: That of the op's result, or of what it sums.
            columns: How many elements a row has that it sums.
        """
        for key, own in inputs:
            index, length = _index(own, shape)
            if not index or self.of.setdefault(key, index) != index:
                return False
            if index in ("row", "column"):
                if columns not in (0, length):
                    return False
                columns = length
        if columns and self.columns not in (0, columns):
            return False
        self.columns = columns or self.columns
        return True


@lru_cache(maxsize=4096)
def host_fusion(fusion: Fusion) -> HostFusion | None:
    """Return the loop for fused ops; None: an input is repeated along several axes.

    Args:
        fusion: The ops. A sum, which is over the first axes, is read by none of them.
    """
    count = len(fusion.inputs)
    indices: Indices[int] = Indices()
    shapes = [shape for shape, _ in fusion.inputs]
    for op in fusion.ops:
        is_sum = op.name in SUMS
        shape = shapes[op.inputs[0]] if is_sum else op.shape
        columns = math.prod(op.shape) if is_sum else 0
        if not indices.add([(i, shapes[i]) for i in op.inputs if i < count], shape, columns):
            return None
        shapes.append(shape)
    size = math.prod(shapes[-1])
    pointers: list[str] = []
    loads: list[str] = []
    body: list[str] = []
    stores: list[str] = []
    after: list[str] = []
    for number, index in indices.of.items():
        kind = _TYPES[fusion.inputs[number][1]]
        pointers.append(f"const {kind} *x{number} = (const {kind} *)p[{number + 2}];")
        load = f"const {kind} a{number} = x{number}[{index}];"
        (pointers if index == "0" else loads).append(load)
    names = [f"a{i}" for i in range(count)] + [f"v{i}" for i in range(len(fusion.ops))]
    for number, op in enumerate(fusion.ops):
        operands = [names[i] for i in op.inputs]
        kind = _TYPES[op.dtype]
        value = operands[0] if op.name in SUMS else EXPRESSIONS[op.name](operands, kind)
        body.append(f"const {kind} v{number} = {value};")
    for place, number in enumerate(fusion.outputs):
        op = fusion.ops[number]
        kind = _TYPES[op.dtype]
        pointers.append(f"{kind} *y{place} = ({kind} *)p[{count + place + 2}];")
        if op.name in SUMS:
            pointers.append(f"{_ROW} y{place}[column] = {_FIRST};")
            stores.append(f"y{place}[column] += v{number};")
            if op.name == "Mean":
                after.append(f"{_ROW} y{place}[column] /= ({kind})rows;")
        else:
            stores.append(f"y{place}[i] = v{number};")
    before, behind = ("".join(f"    {line}\n" for line in part) for part in (pointers, after))
    lines = "".join(f"            {line}\n" for line in (*loads, *body, *stores))
    text = f"{_PRELUDE}{before}{_LOOP}{lines}        }}\n    }}\n{behind}}}\n"
    whole = tuple(indices.of.get(number) == "i" for number in range(count))
    are_sums = tuple(fusion.ops[number].name in SUMS for number in fusion.outputs)
    return HostFusion(text, size, indices.columns or size, whole, are_sums)


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
