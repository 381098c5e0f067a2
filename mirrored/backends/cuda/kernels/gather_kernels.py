"""Kernels that gather rows by index, and scatter rows.

Rows of one place are combined in their order, without atomics, so that the bits are the host's.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.copying import ELEMENTS
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, Spec, launch_for_each

_WIDEST = 16  # Bytes that a thread moves at once.
_MOST_AXES = 8
# Threads that combine rows: two blocks for each multiprocessor of the largest cards.
_THREADS = 264 * 256

_GATHER = """
extern "C" __global__ void gather(
    Element *__restrict__ out, const Element *__restrict__ in, const L *__restrict__ indices,
    i64 elements, i64 count, i64 size, i64 width
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= elements) { return; }
    i64 row = number / width, outer = row / count, index = indices[row % count];
    Element nothing = {};
    out[number] = index >= 0 && index < size
        ? in[(outer * size + index) * width + number % width] : nothing;
}
"""
_FLAT = """
struct Sizes { i64 size[8]; };

extern "C" __global__ void flat_indices(
    i64 *__restrict__ out, const i64 *__restrict__ indices, i64 elements, i64 each, i64 outer,
    int depth, Sizes sizes
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= elements) { return; }
    i64 matrix = number / each, flat = matrix;
    const i64 *index = indices + (matrix / outer * each + number % each) * depth;
    bool inside = true;
#pragma unroll
    for (int axis = 0; axis < 8; ++axis) {
        if (axis >= depth) { continue; }
        inside = inside && index[axis] >= 0 && index[axis] < sizes.size[axis];
        flat = flat * sizes.size[axis] + index[axis];
    }
    out[number] = inside ? flat : -1;
}
"""
# A thread has one column of `each` rows of the result, which begin as those of `from`, or filled
# with a value, and goes through all rows in their order.
# `sums` is `out`, but for narrow floats, which are rounded once at the end.
_COMBINE = """
__device__ inline T_C combined(T_C x, T_C y) { return COMBINED; }

extern "C" __global__ void combine(
    T *out, T_C *sums, const T *from, const L *__restrict__ places, const T *__restrict__ rows,
    i64 size, i64 count, i64 width, i64 each, int filled, T_C value
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    i64 column = number % width, first = number / width * each;
    i64 end = first + each < size ? first + each : size;
    for (i64 row = first; row < end; ++row) {
        sums[row * width + column] = filled ? value : load(from[row * width + column]);
    }
    for (i64 i = 0; i < count; ++i) {
        i64 place = places[i];
        if (place >= first && place < end) {
            T_C &to = sums[place * width + column];
            to = combined(to, load(rows[i * width + column]));
        }
    }
    for (i64 row = first; (void *)sums != (void *)out && row < end; ++row) {
        store(out[row * width + column], sums[row * width + column]);
    }
}
"""
# Of a NaN, and of zeros of two signs, extremes keep what TensorFlow's comparisons leave.
_COMBINED = {
    "sum": "(T_C)Sum<Wide<T_C>::Type>::combine(x, y)",
    "prod": "(T_C)Product<Wide<T_C>::Type>::combine(x, y)",
    "max": "x > y ? x : y",
    "min": "x < y ? x : y",
    "greater": "x < y ? y : x",
    "less": "x > y ? y : x",
    "update": "y",
}


_FLAT_SOURCE = source("flat indices", _FLAT)


@cache
def _gather_source(width: int, index: np.dtype[Any]) -> Source:
    return source(f"gather of {width} bytes by", f"{ELEMENTS[width]}\n{_GATHER}", L=index)


@cache
def _combine_source(kind: str, dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    text = teams.TEXT + teams.WIDE + _COMBINE.replace("COMBINED", _COMBINED[kind])
    return source(f"{kind} of rows", text, T=dtype, L=index)


def _gather(xp: Launcher, out: Any, x: Any, indices: Any, *, axis: int, **_: Any) -> None:
    if not out.size:
        return
    if not x.size:
        xp.clear(out)
        return
    row = math.prod(x.shape[axis + 1 :]) * x.itemsize
    # The widest elements that rows are made of.
    together = math.gcd(row, x.data.ptr, out.data.ptr, _WIDEST)
    sizes = (out.nbytes // together, indices.size, x.shape[axis], row // together)
    text = _gather_source(together, indices.dtype)
    args = (out, x, indices, *map(np.int64, sizes))
    launch_for_each(xp, text, "gather", sizes[0], args)


def _flat(xp: Launcher, out: Any, indices: Any, *, sizes: Shape, outer: int, **_: Any) -> None:
    if not out.size:
        return
    depth, padded = len(sizes), np.ones(_MOST_AXES, np.int64)
    padded[:depth] = sizes
    numbers = map(np.int64, (out.size, out.shape[-1], outer))
    args = (out, indices, *numbers, np.int32(depth), padded)
    launch_for_each(xp, _FLAT_SOURCE, "flat_indices", out.size, args)


def _segments(
    xp: Launcher, out: Any, data: Any, ids: Any, *, kind: str, workspace: Any = (), **attrs: Any
) -> None:
    _combine(xp, out, out, ids, data, kind, workspace, value=attrs["initial"])


def _segments_workspace(
    data: Spec, ids: Spec, *, num_segments: int, initial: float = 0
) -> tuple[Spec, ...]:
    (shape, dtype), (own, _) = data, ids
    return _sums((num_segments, *shape[len(own) :]), dtype)


def _rows(
    xp: Launcher, out: Any, tensor: Any, places: Any, rows: Any, *, kind: str, workspace: Any = ()
) -> None:
    _combine(xp, out, tensor, places, rows, kind, workspace)


def _rows_workspace(tensor: Spec, places: Spec, rows: Spec) -> tuple[Spec, ...]:
    return _sums(*tensor)


def _sums(shape: Shape, dtype: np.dtype[Any]) -> tuple[Spec, ...]:
    return ((shape, np.dtype(np.float32)),) if dtype.name in teams.NARROW else ()


def _combine(
    xp: Launcher,
    out: Any,
    start: Any,
    places: Any,
    rows: Any,
    kind: str,
    workspace: Any,
    value: float | None = None,
) -> None:
    sums = workspace[0] if workspace else out
    if not out.size:
        return
    width = out.size // out.shape[0]
    per_thread = -(-out.shape[0] // max(1, _THREADS // width))
    threads = -(-out.shape[0] // per_thread) * width
    numbers = map(np.int64, (out.shape[0], places.size, width, per_thread))
    filled, number = np.int32(value is not None), np.asarray(value or 0).astype(sums.dtype)[()]
    args = (out, sums, start, places, rows, *numbers, filled, number)
    text = _combine_source(kind, out.dtype, places.dtype)
    launch_for_each(xp, text, "combine", threads, args)


KERNELS: dict[str, DeviceKernel] = {
    "FlatIndices": DeviceKernel(_flat),
    "GatherV2": DeviceKernel(_gather),
    **{
        f"UnsortedSegment{kind.capitalize()}": DeviceKernel(
            partial(_segments, kind=kind, initial=int(kind == "prod")), _segments_workspace
        )
        for kind in ("sum", "prod", "max", "min")
    },
    **{
        f"TensorScatter{name}": DeviceKernel(partial(_rows, kind=kind), _rows_workspace)
        for name, kind in (
            ("Update", "update"),
            ("Add", "sum"),
            ("Max", "greater"),
            ("Min", "less"),
        )
    },
}
