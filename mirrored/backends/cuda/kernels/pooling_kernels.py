"""Pooling and its gradients: a thread for each element of the result, over the taps in their order.

Padding is never an element. The largest of a window passes over NaN, and is a finite number where
nothing is larger, as on the host. Of equal elements the first one has the gradient.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams, windows
from mirrored.backends.cuda.kernels.windows import windows_of
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, launch_for_each

_LARGEST = """
extern "C" __global__ void largest(
    T *__restrict__ y, const T *__restrict__ x, i64 count, i64 channels, Windows w, T_C lowest
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    T_C most = lowest;
    for_each_tap<false>(w, located((N)number, w.count, channels), [&](const Place &there, N) {
        T_C value = load(x[number_of(there, w.size, channels)]);
        most = value > most ? value : most;
        return true;
    });
    store(y[number], most);
}
"""
_OF_FLOATS = """
// The tap of the first element of a window that is equal to its largest; negative: there is none.
__device__ inline N first_largest(
    const T *__restrict__ x, T_C largest, const Place &window, i64 channels, const Windows &w
) {
    N first = -1;
    for_each_tap<false>(w, window, [&](const Place &there, N tap) {
        if (load(x[number_of(there, w.size, channels)]) == largest) { first = tap; }
        return first < 0;
    });
    return first;
}

extern "C" __global__ void largest_gradient(
    T *__restrict__ out, const T *__restrict__ x, const T *__restrict__ y, const T *__restrict__ g,
    i64 count, i64 channels, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    T_C value = load(x[number]), sum = 0;
    for_each_tap<true>(w, located((N)number, w.size, channels), [&](const Place &window, N tap) {
        N at = number_of(window, w.count, channels);
        T_C largest = load(y[at]);
        if (value == largest && first_largest(x, largest, window, channels, w) == tap) {
            sum += load(g[at]);
        }
        return true;
    });
    store(out[number], sum);
}

// What `u`, of the shape of `x`, has where the largest is.
extern "C" __global__ void at_largest(
    T *__restrict__ out, const T *__restrict__ x, const T *__restrict__ y, const T *__restrict__ u,
    i64 count, i64 channels, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    Place place = located((N)number, w.count, channels);
    N tap = first_largest(x, load(y[number]), place, channels, w);
    T_C sum = 0;
    if (tap >= 0 && move<false>(w, place, tap)) {
        sum += load(u[number_of(place, w.size, channels)]);
    }
    store(out[number], sum);
}

// What the values of a window are divided by.
__device__ inline T_C elements(const Place &window, const Windows &w) {
    N count = 0;
    for_each_tap<false>(w, window, [&](const Place &, N) { ++count; return true; });
    return (T_C)(count > 0 ? count : 1);
}

extern "C" __global__ void mean(
    T *__restrict__ y, const T *__restrict__ x, i64 count, i64 channels, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    Place window = located((N)number, w.count, channels);
    T_C sum = 0;
    for_each_tap<false>(w, window, [&](const Place &there, N) {
        sum += load(x[number_of(there, w.size, channels)]);
        return true;
    });
    store(y[number], sum / elements(window, w));
}

extern "C" __global__ void mean_gradient(
    T *__restrict__ out, const T *__restrict__ g, i64 count, i64 channels, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    T_C sum = 0;
    for_each_tap<true>(w, located((N)number, w.size, channels), [&](const Place &window, N) {
        sum += load(g[number_of(window, w.count, channels)]) / elements(window, w);
        return true;
    });
    store(out[number], sum);
}
"""


@cache
def _source(is_of_any: bool, dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    """Return the text of the largest elements, of any numbers, or that of all else, of floats."""
    name, text = ("largest", _LARGEST) if is_of_any else ("pooling", _OF_FLOATS)
    return source(f"{name} in windows", windows.TEXT + text, T=dtype, N=index)


def _pool(
    xp: Launcher,
    out: Any,
    *inputs: Any,
    kind: str,
    window: Shape,
    sizes: Shape = (),
    **attrs: Any,
) -> None:
    if not out.size:
        return
    images = out if sizes else inputs[0]
    of_axes = windows_of(images.shape[1:-1], window, **attrs)
    index = of_axes.index(*(each.size for each in (out, *inputs)))
    args = (out, *inputs, np.int64(out.size), np.int64(out.shape[-1]), of_axes.layout)
    if kind == "largest":
        args = (*args, _lowest(out.dtype))
    launch_for_each(xp, _source(kind == "largest", out.dtype, index), kind, out.size, args)


@cache
def _lowest(dtype: np.dtype[Any]) -> Any:
    """Return the lowest finite number of those that are computed with."""
    if dtype.name in teams.INTEGERS:
        return dtype.type(np.iinfo(dtype).min)
    return np.finfo(np.float32 if dtype.name in teams.NARROW else dtype).min


KERNELS: dict[str, DeviceKernel] = {
    f"{pooling}{suffix}{gradient}": DeviceKernel(partial(_pool, kind=kind))
    for suffix in ("", "3D")
    for pooling, gradient, kind in (
        ("AvgPool", "", "mean"),
        ("AvgPool", "Grad", "mean_gradient"),
        ("MaxPool", "", "largest"),
        ("MaxPool", "Grad", "largest_gradient"),
        ("MaxPool", "GradGrad", "at_largest"),
    )
}
