"""Kernels that reduce axes: sums, products, extremes and their indices.

A reduction that would keep few threads busy is made in two steps, whose order is fixed as well.
"""

import math
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.teams import Teams
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, Spec

# Multiprocessors of the largest cards, and blocks for all of them. The same everywhere, as are the
# bits.
_PROCESSORS, _BLOCKS = 132, 264
# A second kernel costs more than it saves where a thread has fewer elements than the first number,
# and in each of its parts it has at least the second.
_SPLIT_FROM, _LEAST_EACH = 64, 8
_NO_MEAN = -1
_USUAL_AXES = (2, 1)  # Kept and reduced, once adjacent ones are merged.
_PLACE_BYTES = 16  # Of a value and its index, as they are aligned.
_WIDE_INTEGER_BYTES = 8
_LOGIC_BYTES = 4

_SUM = """
__device__ inline float quotient(float sum, i64 count, float) { return sum / (float)count; }
__device__ inline double quotient(double sum, i64 count, double) { return sum / (double)count; }
__device__ inline u64 quotient(u64 sum, i64 count, u64) { return count ? sum / (u64)count : 0; }
template <class I> __device__ inline i64 quotient(u64 sum, i64 count, I) {
    return count ? (i64)sum / count : 0;
}

struct Op : Sum<Wide<IN_C>::Type> {
    static __device__ inline State of(IN_C x, i64) { return (State)x; }
    static __device__ inline OUT_C result(State sum, i64 count) {
        return count < 0 ? (OUT_C)sum : (OUT_C)quotient(sum, count, IN_C());
    }
};
"""
_PROD = """
struct Op : Product<Wide<IN_C>::Type> {
    static __device__ inline State of(IN_C x, i64) { return (State)x; }
    static __device__ inline OUT_C result(State product, i64) { return (OUT_C)product; }
};
"""
_EXTREME = """
struct Op : EXTREME<IN_C> {
    static __device__ inline State of(IN_C x, i64) { return x; }
    static __device__ inline OUT_C result(State extreme, i64) { return (OUT_C)extreme; }
};
"""
_PLACE = """
struct Place { IN_C value; i64 index; };

__device__ inline Place exchange(Place mine, int mask) {
    Place other;
    other.value = exchange(mine.value, mask);
    other.index = exchange(mine.index, mask);
    return other;
}

struct Op {
    typedef Place State;
    typedef EXTREME<IN_C> Extreme;
    static __device__ inline Place nothing() { return {Extreme::nothing(), 0x7fffffffffffffffLL}; }
    static __device__ inline Place combine(Place a, Place b) {
        bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
        bool equal = a.value == b.value || (a_is_nan && b_is_nan);
        bool first = equal ? a.index <= b.index : a_is_nan || Extreme::before(a.value, b.value);
        return first ? a : b;
    }
    static __device__ inline Place of(IN_C x, i64 index) { return {x, index}; }
    static __device__ inline OUT_C result(Place place, i64) { return (OUT_C)place.index; }
};
"""
_LOGIC = """
struct Op {
    typedef int State;
    static __device__ inline State nothing() { return NOTHING; }
    static __device__ inline State combine(State a, State b) { return a OPERATOR b; }
    static __device__ inline State of(IN_C x, i64) { return x != 0; }
    static __device__ inline OUT_C result(State state, i64) { return (OUT_C)state; }
};
"""
_KINDS = {
    "Sum": teams.WIDE + _SUM,
    "Prod": teams.WIDE + _PROD,
    "Max": _EXTREME.replace("EXTREME", "Largest"),
    "Min": _EXTREME.replace("EXTREME", "Smallest"),
    "All": _LOGIC.replace("NOTHING", "1").replace("OPERATOR", "&"),
    "Any": _LOGIC.replace("NOTHING", "0").replace("OPERATOR", "|"),
    "ArgMax": _PLACE.replace("EXTREME", "Largest"),
    "ArgMin": _PLACE.replace("EXTREME", "Smallest"),
}
_PLACES, _LOGICAL = ("ArgMax", "ArgMin"), ("All", "Any")
_TEXT = """
struct Layout { i64 kept_size[KEPT], kept_step[KEPT], size[REDUCED], step[REDUCED]; };

// From the number of an element, along axes of which the last is the fastest, to its place.
template <int AXES> __device__ inline i64 located(i64 number, const i64 *size, const i64 *step) {
    i64 place = 0;
#pragma unroll
    for (int axis = AXES - 1; axis > 0; --axis) {
        place += number % size[axis] * step[axis];
        number /= size[axis];
    }
    return place + number * step[0];
}

// A row is the elements that become one. Each part of it, of `each` elements but for the last,
// gives one of `out`, of shape (parts, rows); `count` divides it unless it is negative.
extern "C" __global__ void __launch_bounds__(512, 2) reduce(
    const IN *__restrict__ x, OUT *__restrict__ out, Layout layout,
    i64 rows, i64 length, i64 parts, i64 each, i64 count, int height, int along
) {
    Team team = my_team(height, along);
    i64 tiles = (rows + team.rows - 1) / team.rows;
    for (i64 block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
        i64 part = block / tiles, row = (block - part * tiles) * team.rows + team.row;
        i64 start = part * each, end = start + each < length ? start + each : length;
        bool mine = row < rows;
        const IN *from =
            x + (mine ? located<KEPT>(row, layout.kept_size, layout.kept_step) : 0);
        Op::State state = reduced<Op>(start, mine ? end : start, team, [&](i64 i) {
            return from[located<REDUCED>(i, layout.size, layout.step)];
        }, [](IN value, i64 i) { return Op::of(load(value), i); });
        if (mine && team.place == 0) {
            store(out[part * rows + row], Op::result(state, count));
        }
    }
}
"""


class Plan(NamedTuple):
    """How one array is reduced.

    Attributes:
        rows: The elements of the result.
        length: The elements that become one.
        layout: What the kernel's struct holds.
        axes: How many kept and reduced axes it has.
        teams: How a block is divided.
        parts: How many parts a row is reduced in, which a second kernel then reduces.
    """

    rows: int
    length: int
    layout: np.ndarray[Any, Any]
    axes: tuple[int, int]
    teams: Teams
    parts: int


@lru_cache(maxsize=4096)
def _plan(shape: Shape, axis: tuple[int, ...]) -> Plan:
    kept, reduced = _axes(shape, axis)
    rows, length = (math.prod(size for size, _ in axes) for axes in (kept, reduced))
    along = kept[-1][1] != 1
    split = teams.teams(length, along=along, side_by_side=kept[-1][0])
    tiles = max(1, -(-rows // split.rows))
    parts = 1
    if tiles < _PROCESSORS and length >= split.height * _SPLIT_FROM:
        parts = min(_BLOCKS // tiles, length // (split.height * _LEAST_EACH))
    layout = np.concatenate([np.transpose(kept).reshape(-1), np.transpose(reduced).reshape(-1)])
    layout.flags.writeable = False
    return Plan(rows, length, layout, (len(kept), len(reduced)), split, parts)


def _axes(
    shape: Shape, axis: tuple[int, ...]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return sizes and steps of the kept and the reduced axes, adjacent ones merged."""
    merged: list[tuple[bool, int, int]] = []
    step = 1
    for i in reversed(range(len(shape))):
        size, is_reduced = shape[i], i in axis
        if size != 1:
            if merged and merged[-1][0] == is_reduced:
                _, inner, inner_step = merged.pop()
                merged.append((is_reduced, size * inner, inner_step))
            else:
                merged.append((is_reduced, size, step))
        step *= size
    kept, reduced = (
        [(size, step) for is_reduced, size, step in reversed(merged) if is_reduced == wanted]
        for wanted in (False, True)
    )
    # Never fewer than in the usual cases, so that these have one text.
    return [(1, 0)] * (_USUAL_AXES[0] - len(kept)) + kept, reduced or [(1, 0)]


@cache
def _source(
    kind: str, axes: tuple[int, int], read: np.dtype[Any], written: np.dtype[Any]
) -> Source:
    name, text = kind.lower(), _KINDS[kind]
    kept, reduced = axes
    if axes != _USUAL_AXES:
        name = f"{name} along {reduced} axes beside {kept}"
    sizes = f"#define KEPT {kept}\n#define REDUCED {reduced}\n"
    return source(name, f"{sizes}{teams.TEXT}{text}{_TEXT}", IN=read, OUT=written)


def _launch(
    xp: Launcher, kind: str, out: Any, x: Any, plan: Plan, *, parts: int, count: int
) -> None:
    plan.teams.launch(
        xp,
        _source(kind, plan.axes, x.dtype, out.dtype),
        "reduce",
        plan.rows,
        (
            x,
            out,
            plan.layout,
            np.int64(plan.rows),
            np.int64(plan.length),
            np.int64(parts),
            np.int64(-(-plan.length // parts)),
            np.int64(count),
            np.int32(plan.teams.height),
            np.int32(plan.teams.along),
        ),
        state=_state_size(kind, x.dtype),
        parts=parts,
    )


def _state_size(kind: str, dtype: np.dtype[Any]) -> int:
    if kind in _PLACES:
        return _PLACE_BYTES
    if kind in _LOGICAL:
        return _LOGIC_BYTES
    is_wide = kind in ("Sum", "Prod") and dtype.name in teams.INTEGERS
    return _WIDE_INTEGER_BYTES if is_wide else teams.state_size(dtype)


def _reduce(
    xp: Launcher,
    out: Any,
    x: Any,
    *,
    kind: str,
    mean: bool = False,
    axis: tuple[int, ...],
    keepdims: bool = False,
    workspace: Any = (),
) -> None:
    plan = _plan(x.shape, axis)
    count = plan.length if mean else _NO_MEAN
    if not plan.rows:
        return
    if plan.length == 1 and out.dtype == x.dtype:  # Narrow floats may be wanted in float32.
        xp.copy(out, x)
    elif plan.parts == 1:
        _launch(xp, kind, out, x, plan, parts=1, count=count)
    else:
        (partial_results,) = workspace
        _launch(xp, kind, partial_results, x, plan, parts=plan.parts, count=_NO_MEAN)
        add_parts(xp, out, partial_results, kind=kind, count=count)


def add_parts(
    xp: Launcher, out: Any, parts: Any, *, kind: str = "Sum", count: int = _NO_MEAN
) -> None:
    """Reduce the results of parts, of shape (parts, results), to one result of each.

    Args:
        xp: What launches.
        out: The results.
        parts: Those of the parts.
        kind: The reduction.
        count: What the results are divided by, unless it is negative.
    """
    _launch(xp, kind, out, parts, _plan(parts.shape, (0,)), parts=1, count=count)


def _workspace(
    x: Spec, *, axis: tuple[int, ...], keepdims: bool = False, mean: bool = False
) -> tuple[Spec, ...]:
    shape, dtype = x
    plan = _plan(shape, axis)
    if plan.parts == 1:
        return ()
    return (((plan.parts, plan.rows), dtype_of_parts(dtype, mean)),)


def dtype_of_parts(dtype: np.dtype[Any], mean: bool = False) -> np.dtype[Any]:
    """Return what the first of two steps writes.

    Narrow floats stay in single precision until last, integers whose mean is wanted in 64 bits.
    """
    if mean and dtype.name in teams.INTEGERS:
        return dtype if dtype.name == "uint64" else np.dtype(np.int64)
    return np.dtype(np.float32) if dtype.name in teams.NARROW else dtype


def _place(
    xp: Launcher, out: Any, x: Any, *, kind: str, axis: int, output_type: np.dtype[Any]
) -> None:
    plan = _plan(x.shape, (axis,))
    if plan.rows:
        _launch(xp, kind, out, x, plan, parts=1, count=_NO_MEAN)


def columns_of(g: Shape) -> tuple[int, int]:
    """Return how many rows and columns there are for `BiasAddGrad`."""
    return (math.prod(g[:-1]), g[-1])


def plan_of_columns(shape: Shape) -> Plan:
    """Return how the columns of a matrix are summed, by its size."""
    return _plan(shape, (0,))


def sum_columns(xp: Launcher, out: Any, g: Any, *, workspace: Any = ()) -> None:
    """Write the sums of columns, as `BiasAddGrad` has them; of narrow floats also in float32."""
    _reduce(xp, out, g.reshape(columns_of(g.shape)), kind="Sum", axis=(0,), workspace=workspace)


def _bias_add_grad_workspace(g: Spec) -> tuple[Spec, ...]:
    shape, dtype = g
    return _workspace((columns_of(shape), dtype), axis=(0,))


KERNELS: dict[str, DeviceKernel] = {
    **{
        kind: DeviceKernel(partial(_reduce, kind=kind), _workspace)
        for kind in ("Sum", "Prod", "Max", "Min", *_LOGICAL)
    },
    "Mean": DeviceKernel(partial(_reduce, kind="Sum", mean=True), partial(_workspace, mean=True)),
    **{kind: DeviceKernel(partial(_place, kind=kind)) for kind in _PLACES},
    "BiasAddGrad": DeviceKernel(sum_columns, _bias_add_grad_workspace),
}
