"""Kernels that move elements without computing: transposes, joins, slices and fills.

To copies an element is a number of bytes: one source per width serves all dtypes. One text fills
with all values of a dtype.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, launch_for_each

_AXES = 8  # As many as the kernels' struct has; copies of more are made of several.
_TILE = 32
# A tile is mostly empty, and its barrier costs more than it gains, where an axis is shorter.
_SHORTEST_TILED = 16
ELEMENTS = {
    1: "typedef unsigned char Element;",
    2: "typedef unsigned short Element;",
    4: "typedef u32 Element;",
    8: "typedef u64 Element;",
    16: "struct alignas(16) Element { u64 low, high; };",
}

_TEXT = """
struct Layout { i64 size[8], to[8], from[8]; };

// From the number of an element among those of the axes from FIRST on, the last of them the
// fastest, to its places. Unrolled: an index that is not constant would move the struct to memory.
template <int FIRST, class Index>
__device__ inline void locate(
    Index number, int rank, const Layout &layout, i64 &to, i64 &from
) {
#pragma unroll
    for (int axis = 7; axis >= FIRST; --axis) {
        if (axis >= rank) { continue; }
        Index size = (Index)layout.size[axis];
        Index rest = axis > FIRST ? number / size : 0;
        i64 here = (i64)(number - rest * size);
        to += here * layout.to[axis];
        from += here * layout.from[axis];
        number = rest;
    }
}

extern "C" __global__ void strided_copy(
    Element *__restrict__ out, const Element *__restrict__ in, i64 count, int rank, Layout layout
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x, to = 0, from = 0;
    if (number >= count) { return; }
    // Division of 64 bits takes several times as long.
    if (count <= 0x7fffffff) { locate<0, u32>((u32)number, rank, layout, to, from); }
    else { locate<0, u64>((u64)number, rank, layout, to, from); }
    out[to] = in[from];
}

// `in` is contiguous along axis 0 and `out` along axis 1: both are walked along their own by way
// of a tile, whose rows are one longer so that a column of it is spread over all memory banks.
extern "C" __global__ void tiled_copy(
    Element *__restrict__ out, const Element *__restrict__ in, int rank, Layout layout
) {
    __shared__ Element tile[32][33];
    u32 tiles_0 = (u32)((layout.size[0] + 31) / 32), tiles_1 = (u32)((layout.size[1] + 31) / 32);
    u32 rest = blockIdx.x / tiles_0;
    i64 start_0 = (i64)(blockIdx.x % tiles_0) * 32, start_1 = (i64)(rest % tiles_1) * 32;
    i64 to = 0, from = 0;
    locate<2, u32>(rest / tiles_1, rank, layout, to, from);
    for (int row = threadIdx.y; row < 32; row += 8) {
        i64 i = start_0 + threadIdx.x, j = start_1 + row;
        if (i < layout.size[0] && j < layout.size[1]) {
            tile[row][threadIdx.x] = in[from + i * layout.from[0] + j * layout.from[1]];
        }
    }
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8) {
        i64 i = start_0 + row, j = start_1 + threadIdx.x;
        if (i < layout.size[0] && j < layout.size[1]) {
            out[to + i * layout.to[0] + j * layout.to[1]] = tile[threadIdx.x][row];
        }
    }
}
"""

_SOURCES = {
    width: source(f"copies of {width} bytes", f"{element}\n{_TEXT}")
    for width, element in ELEMENTS.items()
}


class _Axis(NamedTuple):
    size: int
    to: int  # Steps in elements, of the target and of what is copied.
    origin: int


def copy(xp: Launcher, target: Any, origin: Any) -> None:
    """Copy the elements of an array into another one.

    Args:
        xp: What launches.
        target: What is written: any view of contiguous memory in which no element is twice.
        origin: What is read, of the target's shape and dtype: any view.
    """
    axes = _merged(target, origin)
    if not target.size:
        return
    if len(axes) > _AXES:
        for part in range(target.shape[0]):
            copy(xp, target[part], origin[part])
    elif not axes or (len(axes) == 1 and axes[0].to == axes[0].origin == 1):
        xp.copy(target, origin)
    elif (tiled := _tiled(axes)) is not None:
        blocks = math.prod(axis.size for axis in tiled[2:])
        blocks *= math.prod(-(-axis.size // _TILE) for axis in tiled[:2])
        xp.launch(
            _SOURCES[target.itemsize],
            "tiled_copy",
            (blocks, 1, 1),
            (_TILE, 8, 1),
            (target, origin, np.int32(len(tiled)), _layout(tiled)),
        )
    else:
        width, axes = _widened(target, origin, axes)
        count = math.prod(axis.size for axis in axes)
        args = (target, origin, np.int64(count), np.int32(len(axes)), _layout(axes))
        launch_for_each(xp, _SOURCES[width], "strided_copy", count, args)


def _merged(target: Any, origin: Any) -> list[_Axis]:
    """Return the axes, with those as one along which both arrays go on evenly."""
    axes: list[_Axis] = []
    width = target.itemsize
    for size, to, by in zip(target.shape, target.strides, origin.strides, strict=True):
        if size == 1:
            continue
        axis = _Axis(size, to // width, by // width)
        if axes and axes[-1].to == size * axis.to and axes[-1].origin == size * axis.origin:
            axis = axis._replace(size=axes.pop().size * size)
        axes.append(axis)
    return axes


def _tiled(axes: list[_Axis]) -> list[_Axis] | None:
    """Return the axes with those of the tiles first; None where tiles are no help."""
    last = axes[-1]
    if last.to != 1 or last.origin == 1 or last.size < _SHORTEST_TILED:
        return None
    for i, axis in enumerate(axes[:-1]):
        if axis.origin == 1 and axis.size >= _SHORTEST_TILED:
            return [axis, last, *axes[:i], *axes[i + 1 : -1]]
    return None


def _widened(target: Any, origin: Any, axes: list[_Axis]) -> tuple[int, list[_Axis]]:
    """Return the widest elements, in bytes, that runs of both arrays are made of, and the axes."""
    width, last = target.itemsize, axes[-1]
    if last.to != 1 or last.origin != 1:
        return width, axes
    steps = [step for axis in axes[:-1] for step in (axis.to, axis.origin)]
    # The greatest power of two that divides all of them.
    common = math.gcd(last.size, *steps, target.data.ptr // width, origin.data.ptr // width)
    times = min(common & -common, 16 // width)
    wide = [_Axis(axis.size, axis.to // times, axis.origin // times) for axis in axes[:-1]]
    return width * times, [*wide, last._replace(size=last.size // times)]


def _layout(axes: list[_Axis]) -> Any:
    layout = np.zeros((3, _AXES), np.int64)
    layout[:, : len(axes)] = np.transpose(axes)
    return layout.reshape(-1)


def _transpose(xp: Launcher, out: Any, x: Any, *, perm: tuple[int, ...]) -> None:
    copy(xp, out, x.transpose(perm))


def _concat(xp: Launcher, out: Any, *arrays: Any, axis: int) -> None:
    start = 0
    for array in arrays:
        stop = start + array.shape[axis]
        copy(xp, out[(*[slice(None)] * axis, slice(start, stop))], array)
        start = stop


def _pack(xp: Launcher, out: Any, *arrays: Any) -> None:
    for row, array in enumerate(arrays):
        copy(xp, out[row], array)


def _slice(xp: Launcher, out: Any, x: Any, *, index: tuple[Any, ...]) -> None:
    copy(xp, out, x[index])


def _slice_grad(
    xp: Launcher, out: Any, g: Any, *, index: tuple[Any, ...], shape: tuple[int, ...]
) -> None:
    if g.size < out.size:  # Otherwise all of it is written.
        xp.clear(out)
    copy(xp, out[index], g)


def _slice_update(xp: Launcher, out: Any, x: Any, part: Any, *, index: tuple[Any, ...]) -> None:
    if out.data.ptr != x.data.ptr:
        xp.copy(out, x)
    copy(xp, out[index], part)


_FILL_TEXT = """
extern "C" __global__ void fill(T *out, i64 n, T_C value) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { store(out[i], value); }
}
"""


def _fill_source(dtype: np.dtype[Any]) -> Source:
    return source("fill", _FILL_TEXT, T=dtype)


def fill(xp: Launcher, out: Any, value: Any) -> None:
    """Set every element of an array to a number that its dtype can hold."""
    if not out.size:
        return
    # Kernels compute with floats of 16 bits in single precision, and take such numbers.
    kind = np.dtype(np.float32) if out.dtype.name in teams.NARROW else out.dtype
    number = np.asarray(value).astype(kind)[()]
    launch_for_each(
        xp, _fill_source(out.dtype), "fill", out.size, (out, np.int64(out.size), number)
    )


def _fill(xp: Launcher, out: Any, *, shape: Any, value: Any, dtype: Any) -> None:
    fill(xp, out, value)


def _zeros(xp: Launcher, out: Any, *_: Any, **attrs: Any) -> None:
    xp.clear(out)


def _ones(xp: Launcher, out: Any, *_: Any, **attrs: Any) -> None:
    fill(xp, out, 1)


KERNELS = {
    "ConcatV2": DeviceKernel(_concat),
    "Fill": DeviceKernel(_fill),
    "OnesLike": DeviceKernel(_ones),
    "Pack": DeviceKernel(_pack),
    "StridedSlice": DeviceKernel(_slice),
    "StridedSliceGrad": DeviceKernel(_slice_grad),
    "TensorStridedSliceUpdate": DeviceKernel(_slice_update),
    "Transpose": DeviceKernel(_transpose),
    "ZerosLike": DeviceKernel(_zeros),
}
