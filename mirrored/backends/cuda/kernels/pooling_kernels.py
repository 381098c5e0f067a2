"""Pooling and its gradients: a thread for each element of the result, over the taps in their order.

Padding is never an element. The largest of a window passes over NaN, and is a finite number where
nothing is larger, as on the host. Of equal elements the first one has the gradient.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams, window_layout
from mirrored.backends.cuda.kernels.window_layout import windows_of
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, launch_for_each

# `x`, `y` and `g` are the inputs, in order; where there are fewer of them, `x` again.
_TEXT = """
// The number of elements that a window has.
__device__ inline N elements(const Place &window, const Windows &w) {
    N count = 0;
    for_each_tap<false>(w, window, [&](const Place &, N) { ++count; });
    return count;
}

// The tap of the first element of a window that is the largest one.
__device__ inline N first_of(
    const T *x, T_C largest, const Place &window, i64 channels, const Windows &w
) {
    N first = -1;
    for_each_tap<false>(w, window, [&](const Place &there, N tap) {
        bool here = load(x[number_of(there, w.size, channels)]) == largest;
        first = first < 0 && here ? tap : first;
    });
    return first;
}

// The result is divided by the number of `terms` that a step counts.
extern "C" __global__ void pool(
    T *__restrict__ out, const T *__restrict__ x, const T *__restrict__ y, const T *__restrict__ g,
    i64 count, i64 channels, T_C start, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    Place here = located((N)number, TURNED ? w.size : w.number, channels);
    T_C result = start;
    N terms = 0;
    for_each_tap<TURNED>(w, here, [&](const Place &there, N tap) {
        N at = number_of(there, TURNED ? w.number : w.size, channels);
        STEP
    });
    store(out[number], terms > 1 ? result / (T_C)terms : result);
}
"""
# For each op whether its result has the images' shape, and what is done for a tap.
_KINDS = {
    "MaxPool": (False, "result = load(x[at]) > result ? load(x[at]) : result;"),
    "MaxPoolGrad": (
        True,
        "T_C largest = load(y[at]); if (load(x[number]) == largest"
        " && first_of(x, largest, there, channels, w) == tap) { result += load(g[at]); }",
    ),
    "MaxPoolGradGrad": (
        False,
        "if (!terms && load(x[at]) == load(y[number])) { result += load(g[at]); terms = 1; }",
    ),
    "AvgPool": (False, "result += load(x[at]); ++terms;"),
    "AvgPoolGrad": (True, "result += load(x[at]) / (T_C)elements(there, w);"),
}


@cache
def _source(kind: str, dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    is_turned, step = _KINDS[kind]
    text = window_layout.text(_TEXT.replace("STEP", step), is_turned)
    return source(kind, text, T=dtype, N=index)


def _pool(
    xp: Launcher, out: Any, *inputs: Any, kind: str, window: Shape, sizes: Any = (), **attrs: Any
) -> None:
    if not out.size:
        return
    is_turned, _ = _KINDS[kind]
    windows = windows_of((out if is_turned else inputs[0]).shape[1:-1], window, **attrs)
    index = windows.index_dtype(out.size, *(array.size for array in inputs))
    # Kernels compute with floats of 16 bits in single precision, and take such numbers.
    computed = np.dtype(np.float32) if out.dtype.name in teams.NARROW else out.dtype
    limits: Any = np.iinfo if out.dtype.name in teams.INTEGERS else np.finfo
    start = computed.type(limits(computed).min if kind == "MaxPool" else 0)
    numbers = (np.int64(out.size), np.int64(out.shape[-1]), start)
    arrays = (out, *inputs, inputs[0], inputs[0])[:4]
    args = (*arrays, *numbers, windows.layout)
    launch_for_each(xp, _source(kind, out.dtype, index), "pool", out.size, args)


KERNELS: dict[str, DeviceKernel] = {
    name.replace("Pool", pool): DeviceKernel(partial(_pool, kind=name))
    for pool in ("Pool", "Pool3D")
    for name in _KINDS
}
