"""Kernels for cumulative sums, products and logarithms of sums of exponentials.

A thread goes along a line in its order, so that results round as the host's do. Many lines are
quick; one long line takes one thread.
"""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher, launch_for_each
from mirrored.backends.cuda.source import Source, source

# Few, so that a handful of lines is spread over several multiprocessors.
_THREADS = 32

# Integers wrap, which is defined for those without a sign.
_TEXT = """
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


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for kind in _KINDS:
        integers = () if kind == "CumulativeLogsumexp" else map(np.dtype, teams.INTEGERS)
        for dtype in (*teams.float_dtypes(), *integers):
            yield _source(kind, dtype)


@cache
def _source(kind: str, dtype: np.dtype[Any]) -> Source:
    neutral, combined = _KINDS[kind]
    text = _TEXT.replace("NAME", kind.lower()).replace("NEUTRAL", neutral)
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
    kind: DeviceKernel(partial(_scan, kind=kind)) for kind in _KINDS
}
