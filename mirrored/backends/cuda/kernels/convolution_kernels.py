"""Convolutions and their gradients: products of patches with filters, by cuBLAS.

Patches are gathered block by block into scratch memory of bounded size: the elements of each window
of the images, or, for the images' gradient, the results that each element has a part of. Where a
window is one element nothing is gathered. Depthwise convolutions have a thread for each element of
the result. Sums are made in a fixed order.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import copying, reduction_kernels, teams, windows
from mirrored.backends.cuda.kernels.windows import Windows, windows_of
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, Spec, launch_for_each

_BLOCK_BYTES = 64 << 20  # Of a block's patches, unless one patch is larger.
_PARTS = 4  # So many blocks' products of the filters' gradient are summed at once.

_PATCHES = """
// A patch is the channels of all taps of a window; turned, of all windows that read an element.
// `first` is the number of the first patch. Neighbouring points of `in` are `step` elements apart.
template <bool TURNED> __device__ inline void gather(
    Element *__restrict__ out, const Element *__restrict__ in,
    i64 count, i64 first, i64 channels, i64 step, const Windows &w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    N rest = (N)number / (N)channels, taps = (N)(w.taps[0] * w.taps[1] * w.taps[2]);
    Place place = located((N)first + rest / taps, TURNED ? w.size : w.count, 1);
    place.channel = (N)number % (N)channels;
    Element nothing = {};
    out[number] = move<TURNED>(w, place, rest % taps)
        ? in[number_of(place, TURNED ? w.count : w.size, step)] : nothing;
}

extern "C" __global__ void patches(
    Element *__restrict__ out, const Element *__restrict__ in,
    i64 count, i64 first, i64 channels, i64 step, Windows w
) { gather<false>(out, in, count, first, channels, step, w); }

extern "C" __global__ void turned_patches(
    Element *__restrict__ out, const Element *__restrict__ in,
    i64 count, i64 first, i64 channels, i64 step, Windows w
) { gather<true>(out, in, count, first, channels, step, w); }
"""

_DEPTHWISE = """
// Each of `channels` channels of `images` gives `each` channels of `results`.
extern "C" __global__ void depthwise(
    T *__restrict__ results, const T *__restrict__ images, const T *__restrict__ filters,
    i64 count, i64 channels, i64 each, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x, outputs = channels * each;
    if (number >= count) { return; }
    Place here = located((N)number, w.count, outputs);
    N output = here.channel;
    here.channel /= (N)each;
    T_C sum = 0;
    for_each_tap<false>(w, here, [&](const Place &there, N tap) {
        sum += load(images[number_of(there, w.size, channels)])
            * load(filters[tap * (N)outputs + output]);
        return true;
    });
    store(results[number], sum);
}

extern "C" __global__ void depthwise_images(
    T *__restrict__ images, const T *__restrict__ filters, const T *__restrict__ results,
    i64 count, i64 channels, i64 each, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x, outputs = channels * each;
    if (number >= count) { return; }
    Place here = located((N)number, w.size, channels);
    N first = here.channel * (N)each;
    T_C sum = 0;
    for (here.channel = first; here.channel < first + (N)each; ++here.channel) {
        for_each_tap<true>(w, here, [&](const Place &there, N tap) {
            sum += load(results[number_of(there, w.count, outputs)])
                * load(filters[tap * (N)outputs + there.channel]);
            return true;
        });
    }
    store(images[number], sum);
}

struct Both { T x, g; };

// As `reduce` sums columns: there is a row for each element of the filters.
extern "C" __global__ void __launch_bounds__(512, 2) depthwise_filters(
    S *__restrict__ sums, const T *__restrict__ images, const T *__restrict__ results,
    i64 rows, i64 length, i64 parts, i64 channels, i64 each, int height, int along, Windows w
) {
    Team team = my_team(height, along);
    i64 tiles = (rows + team.rows - 1) / team.rows, share = (length + parts - 1) / parts;
    N outputs = (N)(channels * each);
    for (i64 block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
        i64 part = block / tiles, row = (block - part * tiles) * team.rows + team.row;
        i64 start = part * share, end = start + share < length ? start + share : length;
        bool mine = row < rows;
        N tap = (N)row / outputs, output = (N)row % outputs;
        T_C sum = reduced<Sum<T_C>>(start, mine ? end : start, team, [&](i64 i) {
            Place place = located((N)i, w.count, 1);
            place.channel = output / (N)each;
            Both both = {};
            if (move<false>(w, place, tap)) {
                both.x = images[number_of(place, w.size, channels)];
                both.g = results[(N)i * outputs + output];
            }
            return both;
        }, [](Both both, i64) { return load(both.x) * load(both.g); });
        if (mine && team.place == 0) { store(sums[part * rows + row], sum); }
    }
}
"""


@cache
def _patches_source(width: int, index: np.dtype[Any]) -> Source:
    text = f"{copying.ELEMENTS[width]}\n{windows.TEXT}{_PATCHES}"
    return source(f"patches of {width} bytes by", text, N=index)


@cache
def _depthwise_source(dtype: np.dtype[Any], sums: np.dtype[Any], index: np.dtype[Any]) -> Source:
    text = teams.TEXT + windows.TEXT + _DEPTHWISE
    return source("depthwise convolution", text, T=dtype, S=sums, N=index)


class _Plan(NamedTuple):
    """How the patches of a group of channels are gathered.

    Attributes:
        windows: Where the windows lie.
        is_turned: Whether patches are of results, for elements of the images.
        groups: The number of groups.
        channels: The channels of a patch.
        width: The columns that a group's products of patches and filters have.
        positions: The number of patches.
        each: The patches of a block; 0: nothing is gathered.
        itemsize: The bytes of an element.
    """

    windows: Windows
    is_turned: bool
    groups: int
    channels: int
    width: int
    positions: int
    each: int
    itemsize: int

    @property
    def depth(self) -> int:
        """The number of elements of a patch."""
        return math.prod(self.windows.taps) * self.channels

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.positions // self.each) if self.each else 1

    def workspace(self, dtype: np.dtype[Any], *sizes: int) -> tuple[Spec, ...]:
        """Return specs of a block's patches, a block's results of a group, and more."""
        of_group = self.each * self.width if self.groups > 1 else 0
        return tuple(((size,), dtype) for size in (self.each * self.depth, of_group, *sizes))


def _plan(x: Shape, w: Shape, dtype: np.dtype[Any], is_turned: bool, **attrs: Any) -> _Plan:
    of_axes = windows_of(x[1:-1], w[:-2], **attrs)
    groups = x[-1] // w[-2]
    channels, width = w[-2], w[-1] // groups
    if is_turned:
        channels, width = width, channels
    positions = x[0] * math.prod(of_axes.size if is_turned else of_axes.count)
    ones = (1,) * len(of_axes.size)
    are_points = of_axes.taps == of_axes.stride == ones and not any(of_axes.before)
    each = 0
    if groups > 1 or not are_points or of_axes.size != of_axes.count:
        patch = max(1, math.prod(of_axes.taps) * channels) * dtype.itemsize
        blocks = -(-positions // max(1, _BLOCK_BYTES // patch))
        each = -(-positions // max(1, blocks))  # All but the last of one size.
    return _Plan(of_axes, is_turned, groups, channels, width, positions, each, dtype.itemsize)


def _matrices(
    xp: Launcher, x: Any, group: int, plan: _Plan, patches: Any
) -> Iterator[tuple[slice, Any]]:
    """Gather a block of patches after the other, and yield their numbers and their matrix."""
    if not plan.each:
        yield slice(0, plan.positions), x.reshape(plan.positions, plan.depth)
        return
    origin = x[..., group * plan.channels :]
    run, step = plan.channels * plan.itemsize, x.shape[-1] * plan.itemsize
    # The widest elements that runs of channels are made of.
    together = math.gcd(run, step, origin.data.ptr, patches.data.ptr, 16)
    index = plan.windows.index(x.size, plan.positions, plan.each * plan.depth)
    text = _patches_source(together, index)
    for first in range(0, plan.positions, plan.each):
        rows = min(plan.each, plan.positions - first)
        matrix = patches[: rows * plan.depth].reshape(rows, plan.depth)
        count = matrix.nbytes // together
        sizes = map(np.int64, (count, first, run // together, step // together))
        args = (matrix, origin, *sizes, plan.windows.layout)
        name = "turned_patches" if plan.is_turned else "patches"
        launch_for_each(xp, text, name, count, args)
        yield slice(first, first + rows), matrix


def _multiply(
    xp: Launcher, out: Any, x: Any, w: Any, plan: _Plan, workspace: tuple[Any, ...]
) -> None:
    """Write the products of patches with the filters of each group."""
    if not out.size:
        return
    if not x.size:  # Sums of nothing.
        xp.clear(out)
        return
    patches, results, scratch = workspace
    out, taps = out.reshape(-1, out.shape[-1]), w.reshape(-1, *w.shape[-2:])
    outputs = w.shape[-1] // plan.groups
    for group in range(plan.groups):
        columns = slice(group * plan.width, (group + 1) * plan.width)
        filters = w.reshape(-1, w.shape[-1])
        if scratch.size:  # Those of a group, in the order of the elements of a patch.
            used = taps[..., group * outputs : (group + 1) * outputs]
            used = used.transpose(0, 2, 1) if plan.is_turned else used
            copying.copy(xp, scratch.reshape(used.shape), used)
            filters = scratch.reshape(plan.depth, plan.width)
        is_transposed = plan.is_turned and not scratch.size
        for numbers, matrix in _matrices(xp, x, group, plan, patches):
            part = result = out[numbers, columns]
            if plan.groups > 1:
                result = results[: part.size].reshape(part.shape)
            xp.matmul(result, matrix, filters, transpose_a=False, transpose_b=is_transposed)
            if plan.groups > 1:
                copying.copy(xp, part, result)


def _forward_workspace(x: Spec, w: Spec, **attrs: Any) -> tuple[Spec, ...]:
    plan = _plan(x[0], w[0], x[1], False, **attrs)
    return plan.workspace(x[1], plan.depth * plan.width if plan.groups > 1 else 0)


def _forward(
    xp: Launcher, out: Any, x: Any, w: Any, *, workspace: tuple[Any, ...], **attrs: Any
) -> None:
    _multiply(xp, out, x, w, _plan(x.shape, w.shape, x.dtype, False, **attrs), workspace)


def _images_workspace(w: Spec, g: Spec, *, sizes: Shape, **attrs: Any) -> tuple[Spec, ...]:
    plan = _plan((g[0][0], *sizes), w[0], g[1], True, **attrs)
    return plan.workspace(g[1], plan.depth * plan.width if plan.each else 0)


def _to_images(
    xp: Launcher,
    out: Any,
    w: Any,
    g: Any,
    *,
    sizes: Shape,
    workspace: tuple[Any, ...],
    **attrs: Any,
) -> None:
    _multiply(xp, out, g, w, _plan(out.shape, w.shape, g.dtype, True, **attrs), workspace)


def _filters_workspace(x: Spec, g: Spec, *, sizes: Shape, **attrs: Any) -> tuple[Spec, ...]:
    plan = _plan(x[0], sizes, x[1], False, **attrs)
    size, count = plan.depth * plan.width, plan.blocks if plan.blocks > 1 else 0
    patches, results, total = plan.workspace(x[1], size if plan.groups > 1 else 0)
    parts = (min(count, _PARTS + 1), size)
    return patches, results, total, (parts, reduction_kernels.dtype_of_parts(x[1]))


def _to_filters(
    xp: Launcher,
    out: Any,
    x: Any,
    g: Any,
    *,
    sizes: Shape,
    workspace: tuple[Any, ...],
    **attrs: Any,
) -> None:
    if not g.size:
        xp.clear(out)
        return
    plan = _plan(x.shape, sizes, x.dtype, False, **attrs)
    patches, results, scratch, parts = workspace
    g, shape = g.reshape(plan.positions, -1), (plan.depth, plan.width)
    for group in range(plan.groups):
        columns = slice(group * plan.width, (group + 1) * plan.width)
        total = target = out.reshape(plan.depth, -1)[:, columns]
        if plan.groups > 1:
            total = scratch.reshape(shape)
        held = 0
        for numbers, matrix in _matrices(xp, x, group, plan, patches):
            if held == _PARTS:
                reduction_kernels.add_parts(xp, parts[held], parts[:held])
                xp.copy(parts[0], parts[held])
                held = 1
            part = g[numbers, columns]
            if plan.groups > 1:
                result = results[: part.size].reshape(part.shape)
                copying.copy(xp, result, part)
                part = result
            product = parts[held].reshape(shape) if plan.blocks > 1 else total
            xp.matmul(product, matrix, part, transpose_a=True, transpose_b=False)
            held += 1
        if plan.blocks > 1:
            reduction_kernels.add_parts(xp, total, parts[:held])
        if plan.groups > 1:
            copying.copy(xp, target, total)


# ---------------------------------------------------------------------------- depthwise


def _depthwise(
    xp: Launcher, out: Any, *inputs: Any, name: str, images: Shape, filters: Shape, **attrs: Any
) -> None:
    if not out.size:
        return
    of_axes = windows_of(images[1:-1], filters[:-2], **attrs)
    index = of_axes.index(out.size, *(each.size for each in inputs))
    sizes = map(np.int64, (out.size, *filters[-2:]))
    text = _depthwise_source(out.dtype, out.dtype, index)
    launch_for_each(xp, text, name, out.size, (out, *inputs, *sizes, of_axes.layout))


def _depthwise_forward(xp: Launcher, out: Any, x: Any, w: Any, **attrs: Any) -> None:
    _depthwise(xp, out, x, w, name="depthwise", images=x.shape, filters=w.shape, **attrs)


def _depthwise_images(
    xp: Launcher, out: Any, w: Any, g: Any, *, sizes: Shape, **attrs: Any
) -> None:
    name = "depthwise_images"
    _depthwise(xp, out, w, g, name=name, images=out.shape, filters=w.shape, **attrs)


def _rows_of(g: Shape, filters: Shape) -> Shape:
    """Return how many products become an element of the filters' gradient, and how many it has."""
    return (math.prod(g[:-1]), math.prod(filters))


def _depthwise_filters_workspace(
    x: Spec, g: Spec, *, sizes: Shape, **attrs: Any
) -> tuple[Spec, ...]:
    return reduction_kernels.workspace_of_columns((_rows_of(g[0], sizes), g[1]))


def _depthwise_filters(
    xp: Launcher,
    out: Any,
    x: Any,
    g: Any,
    *,
    sizes: Shape,
    workspace: tuple[Any, ...] = (),
    **attrs: Any,
) -> None:
    if not g.size:
        xp.clear(out)
        return
    of_axes = windows_of(x.shape[1:-1], sizes[:-2], **attrs)
    plan = reduction_kernels.plan_of_columns(_rows_of(g.shape, sizes))
    sums = workspace[0] if workspace else out
    index = of_axes.index(x.size, g.size, out.size)
    numbers = map(np.int64, (plan.rows, plan.length, plan.parts, *sizes[-2:]))
    shape = (np.int32(plan.teams.height), np.int32(plan.teams.along))
    plan.teams.launch(
        xp,
        _depthwise_source(x.dtype, sums.dtype, index),
        "depthwise_filters",
        plan.rows,
        (sums, x, g, *numbers, *shape, of_axes.layout),
        state=teams.state_size(x.dtype),
        parts=plan.parts,
    )
    if workspace:
        reduction_kernels.add_parts(xp, out, sums)


_FORWARD = DeviceKernel(_forward, _forward_workspace)
_TO_IMAGES = DeviceKernel(_to_images, _images_workspace)
_TO_FILTERS = DeviceKernel(_to_filters, _filters_workspace)
KERNELS: dict[str, DeviceKernel] = {
    "Conv2D": _FORWARD,
    "Conv2DBackpropFilter": _TO_FILTERS,
    "Conv2DBackpropInput": _TO_IMAGES,
    "Conv3D": _FORWARD,
    "Conv3DBackpropFilterV2": _TO_FILTERS,
    "Conv3DBackpropInputV2": _TO_IMAGES,
    "DepthwiseConv2dNative": DeviceKernel(_depthwise_forward),
    "DepthwiseConv2dNativeBackpropFilter": DeviceKernel(
        _depthwise_filters, _depthwise_filters_workspace
    ),
    "DepthwiseConv2dNativeBackpropInput": DeviceKernel(_depthwise_images),
}
