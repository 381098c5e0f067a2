"""Kernels for top-k, and for binary search in sorted rows.

An element's place in the order is the number of those before it, which its thread counts: for rows
of some thousands that is quick, and every run gives the same.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher, launch_for_each
from mirrored.backends.cuda.source import Source, source

_TEXT = """
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


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for dtype in (*teams.float_dtypes(), *map(np.dtype, teams.INTEGERS)):
        for index in teams.INDICES:
            yield _source(dtype, np.dtype(index))


@cache
def _source(dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    return source("orders", _TEXT, T=dtype, OUT=index)


def _top_k(
    xp: Launcher, out: Any, x: Any, *, k: int, ascending: bool, output_type: np.dtype[Any]
) -> None:
    if not out.size:
        return
    sizes = (np.int64(x.size), np.int64(x.shape[-1]), np.int64(k))
    args = (out, x, *sizes, np.int32(ascending))
    launch_for_each(xp, _source(x.dtype, output_type), "top_k", x.size, args)


def _bound(
    xp: Launcher, out: Any, rows: Any, values: Any, *, right: bool, output_type: np.dtype[Any]
) -> None:
    if not out.size:
        return
    sizes = (np.int64(out.size), np.int64(out.shape[1]), np.int64(rows.shape[1]))
    args = (out, rows, values, *sizes, np.int32(right))
    launch_for_each(xp, _source(values.dtype, output_type), "bound", out.size, args)


KERNELS: dict[str, DeviceKernel] = {
    "LowerBound": DeviceKernel(partial(_bound, right=False)),
    "TopKV2": DeviceKernel(_top_k),
    "UpperBound": DeviceKernel(partial(_bound, right=True)),
}
