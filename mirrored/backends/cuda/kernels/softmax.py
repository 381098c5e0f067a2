"""Kernels for softmax and log-softmax, with helpers for cross-entropies.

A team of threads reads its row three times, mostly from the cache, so nothing is stored between.
"""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher
from mirrored.backends.cuda.source import Source, source

# For texts whose element type is T.
SHARES = """
// Softmax of one row: element i is exp(x[i] - largest) / sum.
struct Shares {
    T_C largest, sum;
    __device__ inline T_C exponential(T x) const { return exp(load(x) - largest); }
    __device__ inline T_C of(T x) const { return exponential(x) / sum; }
};

// Every thread of the block calls, with a `length` of 0 where it has no row. A row is what
// gives elements by their number, such as a pointer.
template <class Elements> __device__ inline Shares shares_of(
    const Elements &x, i64 length, i64 step, const Team &team
) {
    Shares shares;
    auto read = [&](i64 i) { return x[i * step]; };
    shares.largest = reduced<Largest<T_C>>(0, length, team, read, [](T value, i64) {
        return load(value);
    });
    shares.sum = reduced<Sum<T_C>>(0, length, team, read, [&](T value, i64) {
        return shares.exponential(value);
    });
    return shares;
}
"""
# `out` may be `x`: a thread writes only what it alone still reads.
_TEXT = """
extern "C" __global__ void __launch_bounds__(512, 2) NAME(
    T *out, const T *x, i64 rows, i64 length, i64 step, int height, int along
) {
    Team team = my_team(height, along);
    i64 tiles = (rows + team.rows - 1) / team.rows;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 row = tile * team.rows + team.row;
        bool mine = row < rows;
        i64 first = mine ? row / step * step * length + row % step : 0;
        Shares shares = shares_of(x + first, mine ? length : 0, step, team);
        PREPARED
        for (i64 i = team.place; mine && i < length; i += team.height) {
            i64 at = first + i * step;
            store(out[at], VALUE);
        }
    }
}
"""
# What is computed once a row, and for each element.
_FORMS = {
    "softmax": ("", "shares.of(x[at])"),
    "log_softmax": ("T_C log_sum = log(shares.sum);", "load(x[at]) - shares.largest - log_sum"),
}


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for dtype in teams.float_dtypes():
        for name in _FORMS:
            yield _source(name, dtype)


@cache
def _source(name: str, dtype: np.dtype[Any]) -> Source:
    prepared, value = _FORMS[name]
    text = _TEXT.replace("NAME", name).replace("PREPARED", prepared).replace("VALUE", value)
    return source(name, f"{teams.TEXT}{SHARES}{text}", T=dtype)


def _softmax(xp: Launcher, out: Any, x: Any, *, name: str, axis: int) -> None:
    if not x.size:
        return
    length, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = x.size // length
    split = teams.teams(length, along=step == 1, side_by_side=step)
    sizes = (np.int64(rows), np.int64(length), np.int64(step))
    args = (out, x, *sizes, np.int32(split.height), np.int32(split.along))
    state = teams.state_size(x.dtype)
    split.launch(xp, _source(name, x.dtype), name, rows, args, state=state)


KERNELS: dict[str, DeviceKernel] = {
    "Softmax": DeviceKernel(partial(_softmax, name="softmax")),
    "LogSoftmax": DeviceKernel(partial(_softmax, name="log_softmax")),
}
