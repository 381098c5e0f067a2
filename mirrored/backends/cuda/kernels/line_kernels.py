"""Kernels that go along lines: top-k, binary search in sorted rows, and cumulative results.

An element's place in the order is the number of those before it, which its thread counts: for rows
of some thousands that is quick, and every run gives the same. In a scan a thread goes along a line
in its order, so that results round as the host's do. Many lines are quick; one long line takes one
thread.
"""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, launch_for_each

_ORDER_TEXT = """
// NaN counts as the largest.
template <class A> __device__ inline bool less(A a, A b) { return a < b || (b != b && a == a); }

extern "C" __global__ void top_k(
    OUT *__restrict__ out, const T *__restrict__ x, i64 count, i64 length, i64 k, int ascending
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    i64 line = number / length, here = number - line * length, rank = 0;
    const T *row = x + line * length;
    T_C mine = load(row[here]);
    for (i64 i = 0; i < length && rank < k; ++i) {
        T_C other = load(row[i]);
        bool before = less(other, mine), behind = less(mine, other);
        rank += (ascending ? before : behind) || (!before && !behind && i < here);
    }
    if (rank < k) { out[line * k + rank] = (OUT)here; }
}

// `each` values belong to a row.
extern "C" __global__ void bound(
    OUT *__restrict__ out, const T *__restrict__ rows, const T *__restrict__ values,
    i64 count, i64 each, i64 length, int right
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    const T *row = rows + number / each * length;
    T_C value = load(values[number]);
    i64 first = 0, left = length;
    while (left > 0) {
        i64 step = left / 2;
        T_C found = load(row[first + step]);
        bool before = right ? !(value < found) : found < value;
        if (before) { first += step + 1; left -= step + 1; }
        else { left = step; }
    }
    out[number] = (OUT)first;
}
"""


@cache
def _order_source(dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    return source("orders", _ORDER_TEXT, T=dtype, OUT=index)


def _top_k(
    xp: Launcher, out: Any, x: Any, *, k: int, ascending: bool, output_type: np.dtype[Any]
) -> None:
    if not out.size:
        return
    sizes = (np.int64(x.size), np.int64(x.shape[-1]), np.int64(k))
    args = (out, x, *sizes, np.int32(ascending))
    launch_for_each(xp, _order_source(x.dtype, output_type), "top_k", x.size, args)


def _bound(
    xp: Launcher, out: Any, rows: Any, values: Any, *, right: bool, output_type: np.dtype[Any]
) -> None:
    if not out.size:
        return
    sizes = (np.int64(out.size), np.int64(out.shape[1]), np.int64(rows.shape[1]))
    args = (out, rows, values, *sizes, np.int32(right))
    launch_for_each(xp, _order_source(values.dtype, output_type), "bound", out.size, args)


# Few, so that a handful of lines is spread over several multiprocessors.
_THREADS = 32

# Integers wrap, which is defined for those without a sign.
_SCAN_TEXT = """
template <class A> struct Wide { typedef u64 Type; };
template <> struct Wide<float> { typedef float Type; };
template <> struct Wide<double> { typedef double Type; };
typedef Wide<T_C>::Type State;

__device__ inline State combined(State a, State b) { COMBINED }

extern "C" __global__ void NAME(
    T *__restrict__ out, const T *__restrict__ x, i64 lines, i64 length, i64 step,
    int exclusive, int reverse
) {
    i64 line = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) { return; }
    i64 at = line / step * step * length + line % step;
    if (reverse) { at += (length - 1) * step; }
    State before = NEUTRAL;
    for (i64 i = 0; i < length; ++i) {
        State here = combined(before, (State)load(x[at]));
        store(out[at], (T_C)(exclusive ? before : here));
        before = here;
        at += reverse ? -step : step;
    }
}
"""
_LOGSUMEXP = """
    if (a == b) { return a + (State)0.6931471805599453; }
    State by = a - b;
    return by > 0 ? a + log1p(exp(-by)) : by <= 0 ? b + log1p(exp(by)) : by;
"""
# What a scan begins with, and what it makes of that and of each element.
_KINDS = {
    "Cumsum": ("0", "return a + b;"),
    "Cumprod": ("1", "return a * b;"),
    "CumulativeLogsumexp": ("-INFINITY_F", _LOGSUMEXP),
}


@cache
def _source(kind: str, dtype: np.dtype[Any]) -> Source:
    neutral, combined = _KINDS[kind]
    text = _SCAN_TEXT.replace("NAME", kind.lower()).replace("NEUTRAL", neutral)
    return source(kind.lower(), text.replace("COMBINED", combined), T=dtype)


def _scan(
    xp: Launcher, out: Any, x: Any, *, kind: str, axis: int, exclusive: bool, reverse: bool
) -> None:
    if not x.size:
        return
    length, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    lines = x.size // length
    sizes = (np.int64(lines), np.int64(length), np.int64(step))
    args = (out, x, *sizes, np.int32(exclusive), np.int32(reverse))
    launch_for_each(xp, _source(kind, x.dtype), kind.lower(), lines, args, threads=_THREADS)


KERNELS: dict[str, DeviceKernel] = {
    "LowerBound": DeviceKernel(partial(_bound, right=False)),
    "TopKV2": DeviceKernel(_top_k),
    "UpperBound": DeviceKernel(partial(_bound, right=True)),
    **{kind: DeviceKernel(partial(_scan, kind=kind)) for kind in _KINDS},
}
