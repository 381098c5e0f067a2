"""Where the windows of convolutions and of pooling lie, for kernels and for what launches them.

Arrays have the axes (batch, spatial axes, channels). Kernels have three spatial axes; those that an
array has not are of size 1. A *tap* is one position in a window.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.launcher import Shape

Pairs = tuple[tuple[int, int], ...]

_AXES = 3  # As many as the kernels' struct has.
# Kernels count in 32 bits up to here: a division of 64 bits takes several times as long.
_LARGEST = 2**31 - 1

# `N` is the type that is counted in. *Turned*, it goes from elements to the windows that read them.
_TEXT = """
struct Windows { i64 size[3], taps[3], number[3], stride[3], dilation[3], before[3]; };
struct Place { N image, at[3], channel; };

// From the number of a value among those of an array to its place, and back.
__device__ inline Place located(N value, const i64 *sizes, i64 channels) {
    Place place;
    place.channel = value % (N)channels;
    value /= (N)channels;
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
        place.at[axis] = value % (N)sizes[axis];
        value /= (N)sizes[axis];
    }
    place.image = value;
    return place;
}

__device__ inline N number_of(const Place &place, const i64 *sizes, i64 channels) {
    N value = place.image;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) { value = value * (N)sizes[axis] + place.at[axis]; }
    return value * (N)channels + place.channel;
}

// Where a tap leads to along an axis, from a window to an element. Negative: to none.
template <bool TURNED> __device__ inline N joined(const Windows &w, int axis, N here, N tap) {
    N stride = (N)w.stride[axis], step = tap * (N)w.dilation[axis] - (N)w.before[axis];
    N element = here * stride + step, window = (here - step) / stride;
    if (!TURNED) { return element < (N)w.size[axis] ? element : -1; }
    return window * stride == here - step && window < (N)w.number[axis] ? window : -1;
}

// Moves a place by the tap of this number, and returns whether that leads to one.
template <bool TURNED> __device__ inline bool move(const Windows &w, Place &place, N tap) {
    bool inside = true;
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
        place.at[axis] = joined<TURNED>(w, axis, place.at[axis], tap % (N)w.taps[axis]);
        inside = inside && place.at[axis] >= 0;
        tap /= (N)w.taps[axis];
    }
    return inside;
}

// Calls `visit` with the place that each tap leads to, if there is one, and the tap, in order.
template <bool TURNED, class Visit> __device__ inline void for_each_tap(
    const Windows &w, const Place &here, Visit visit
) {
    Place there = here;
    N tap = 0;
    for (N i = 0; i < (N)w.taps[0]; ++i) {
        there.at[0] = joined<TURNED>(w, 0, here.at[0], i);
        for (N j = 0; j < (N)w.taps[1]; ++j) {
            there.at[1] = joined<TURNED>(w, 1, here.at[1], j);
            for (N k = 0; k < (N)w.taps[2]; ++k, ++tap) {
                there.at[2] = joined<TURNED>(w, 2, here.at[2], k);
                bool inside = there.at[0] >= 0 && there.at[1] >= 0 && there.at[2] >= 0;
                if (inside) { visit(there, tap); }
            }
        }
    }
}
"""


def text(kernel: str, is_turned: bool = False) -> str:
    """Return the text of a kernel, behind all that it takes from here, and with TURNED settled."""
    return _TEXT + kernel.replace("TURNED", str(is_turned).lower())


class Windows(NamedTuple):
    """What the kernels' struct holds, three numbers of each.

    Attributes:
        size: How many elements there are to read.
        taps: How many of them are in a window.
        number: How many windows there are.
        stride: The distance of two windows.
        dilation: The distance of two taps.
        before: How many elements of padding are before the first.
    """

    size: Shape
    taps: Shape
    number: Shape
    stride: Shape
    dilation: Shape
    before: Shape

    @property
    def layout(self) -> np.ndarray[Any, Any]:
        """The struct."""
        return np.array(self, np.int64).reshape(-1)

    def index_dtype(self, *sizes: int) -> np.dtype[Any]:
        """Return what kernels count in, for arrays of these sizes."""
        reach = max(
            windows * stride + taps * dilation + abs(before)
            for _, taps, windows, stride, dilation, before in zip(*self, strict=True)
        )
        return np.dtype(np.int32 if max(sizes) + reach <= _LARGEST else np.int64)


@lru_cache(maxsize=512)
def windows_of(
    sizes: Shape, taps: Shape, *, strides: Shape, padding: Pairs, dilations: Shape
) -> Windows:
    """Return where the windows lie in arrays of these spatial sizes."""
    axes = [(1, 1, 1, 1, 1, 0)] * (_AXES - len(sizes))
    for size, count, stride, (before, after), dilation in zip(
        sizes, taps, strides, padding, dilations, strict=True
    ):
        room = size + before + after - (count - 1) * dilation - 1 + stride
        axes.append((size, count, max(0, room // stride), stride, dilation, before))
    return Windows(*zip(*axes, strict=True))
