"""Convolutions and their gradients: products of patches with filters, by cuBLAS.

Patches are gathered block by block into scratch memory of bounded size: the elements of each window
of the images, or, for the images' gradient, the results that each element has a part of. Where a
window is one element nothing is gathered. Depthwise convolutions have a thread for each element of
the result. Sums are made in a fixed order.
"""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import copying, reduction_kernels, window_layout
from mirrored.backends.cuda.kernels.window_layout import Windows, windows_of
from mirrored.backends.cuda.launcher import DeviceKernel, Launcher, Shape, Spec, launch_for_each

_BLOCK_BYTES = 64 << 20  # Of a block's patches, unless one patch is larger.
_PARTS = 4  # So many blocks' products of the filters' gradient are summed at once.

# Parts that the depthwise filters' gradient is summed in: two blocks for each multiprocessor of the
# largest cards, of so many windows at least.
_THREADS, _LEAST = 264 * 256, 16

_PATCHES = """
// A patch is `channels` channels of all taps. `first` is the number of the first one. Neighbours
// of `in` are `step` elements apart.
extern "C" __global__ void patches(
    Element *__restrict__ out, const Element *__restrict__ in,
    i64 count, i64 first, i64 channels, i64 step, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) { return; }
    N rest = (N)number / (N)channels, taps = (N)(w.taps[0] * w.taps[1] * w.taps[2]);
    Place place = located((N)first + rest / taps, TURNED ? w.size : w.number, 1);
    place.channel = (N)number % (N)channels;
    Element nothing = {};
    out[number] = move<TURNED>(w, place, rest % taps)
        ? in[number_of(place, TURNED ? w.number : w.size, step)] : nothing;
}
"""

# Each of `channels` channels of the images gives `multiplier` channels of the results.
_DEPTHWISE = """
extern "C" __global__ void depthwise(
    T *__restrict__ out, const T *__restrict__ in, const T *__restrict__ filters,
    i64 count, i64 channels, i64 multiplier, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x, outputs = channels * multiplier;
    if (number >= count) { return; }
    Place here = located((N)number, TURNED ? w.size : w.number, TURNED ? channels : outputs);
    N first = TURNED ? here.channel * (N)multiplier : here.channel;
    N end = TURNED ? first + (N)multiplier : first + 1;
    T_C sum = 0;
    for (N output = first; output < end; ++output) {
        here.channel = TURNED ? output : output / (N)multiplier;
        for_each_tap<TURNED>(w, here, [&](const Place &there, N tap) {
            N at = TURNED ? number_of(there, w.number, outputs)
                : number_of(there, w.size, channels);
            sum += load(in[at]) * load(filters[tap * (N)outputs + output]);
        });
    }
    store(out[number], sum);
}
"""
# Each part of the windows, `share` of them but for the last, gives one of `sums`.
_DEPTHWISE_FILTERS = """
extern "C" __global__ void depthwise_filters(
    S *__restrict__ sums, const T *__restrict__ x, const T *__restrict__ g,
    i64 count, i64 columns, i64 length, i64 share, i64 channels, i64 multiplier, Windows w
) {
    i64 number = (i64)blockIdx.x * blockDim.x + threadIdx.x, start = number / columns * share;
    if (number >= count) { return; }
    N outputs = (N)(channels * multiplier), column = (N)(number % columns);
    N tap = column / outputs, output = column % outputs;
    T_C sum = 0;
    for (i64 i = start; i < start + share && i < length; ++i) {
        Place place = located((N)i, w.number, 1);
        place.channel = output / (N)multiplier;
        if (move<false>(w, place, tap)) {
            sum += load(x[number_of(place, w.size, channels)]) * load(g[(N)i * outputs + output]);
        }
    }
    store(sums[number], sum);
}
"""


@cache
def _patches_source(width: int, is_turned: bool, index: np.dtype[Any]) -> Source:
    text = copying.ELEMENTS[width] + window_layout.text(_PATCHES, is_turned)
    return source(f"{'turned ' * is_turned}patches of {width} bytes by", text, N=index)


@cache
def _depthwise_source(dtype: np.dtype[Any], is_turned: bool, index: np.dtype[Any]) -> Source:
    text = window_layout.text(_DEPTHWISE, is_turned)
    return source(f"{'turned ' * is_turned}depthwise convolution", text, T=dtype, N=index)


@cache
def _filters_source(dtype: np.dtype[Any], index: np.dtype[Any]) -> Source:
    text, sums = window_layout.text(_DEPTHWISE_FILTERS), reduction_kernels.dtype_of_parts(dtype)
    return source("gradient of depthwise filters", text, T=dtype, S=sums, N=index)


class _Plan(NamedTuple):
    """How the patches of a group of channels are gathered, and what they are multiplied by.

    Attributes:
        windows: Where the windows lie.
        is_turned: Whether patches are of results, for elements of the images.
        groups: The number of groups.
        channels: The channels of a patch.
        width: The columns of a group's products of patches and filters.
        positions: The number of patches.
        share: The patches of a block; 0: nothing is gathered.
    """

    windows: Windows
    is_turned: bool
    groups: int
    channels: int
    width: int
    positions: int
    share: int

    @property
    def depth(self) -> int:
        """The number of elements of a patch."""
        return math.prod(self.windows.taps) * self.channels

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.positions // self.share) if self.share else 1

    def of_group(self, array: Any, group: int) -> Any:
        """Return a group's part of an array."""
        width = array.shape[-1] // self.groups
        return array[..., group * width : (group + 1) * width]


def _plan(kind: str, a: Shape, b: Shape, dtype: np.dtype[Any], sizes: Shape, **attrs: Any) -> _Plan:
    """Return how patches are gathered for a kind of op, by the shapes of its inputs."""
    x, w = {"forward": (a, b), "images": ((b[0], *sizes), a), "filters": (a, sizes)}[kind]
    windows, groups = windows_of(x[1:-1], w[:-2], **attrs), x[-1] // w[-2]
    channels, width, counts = w[-2], w[-1] // groups, windows.number
    if is_turned := kind == "images":
        channels, width, counts = width, channels, windows.size
    plan = _Plan(windows, is_turned, groups, channels, width, x[0] * math.prod(counts), 0)
    ones = (1, 1, 1)
    is_simple = windows.taps == windows.stride == ones and windows.before == (0, 0, 0)
    if groups == 1 and is_simple and windows.size == windows.number:
        return plan
    longest = max(1, plan.depth, width if groups > 1 else 0) * dtype.itemsize
    blocks = -(-plan.positions // max(1, _BLOCK_BYTES // longest))
    return plan._replace(share=-(-plan.positions // max(1, blocks)))  # But the last, of one size.


def _matrices(
    xp: Launcher, x: Any, group: int, plan: _Plan, patches: Any
) -> Iterator[tuple[slice, Any]]:
    """Gather a block of patches after the other, and yield their numbers and their matrix."""
    if not plan.share:
        yield slice(0, plan.positions), x.reshape(plan.positions, plan.depth)
        return
    origin = plan.of_group(x, group)
    run, step = plan.channels * x.itemsize, x.shape[-1] * x.itemsize
    # The widest elements that runs of channels are made of.
    width = math.gcd(run, step, origin.data.ptr, patches.data.ptr, 16)
    index = plan.windows.index_dtype(x.size, plan.positions, plan.share * plan.depth)
    text = _patches_source(width, plan.is_turned, index)
    for first in range(0, plan.positions, plan.share):
        rows = min(plan.share, plan.positions - first)
        matrix = patches[: rows * plan.depth].reshape(rows, plan.depth)
        sizes = map(np.int64, (matrix.nbytes // width, first, run // width, step // width))
        args = (matrix, origin, *sizes, plan.windows.layout)
        launch_for_each(xp, text, "patches", matrix.nbytes // width, args)
        yield slice(first, first + rows), matrix


def _multiply(xp: Launcher, out: Any, x: Any, w: Any, plan: _Plan, workspace: Any) -> None:
    """Write the products of patches with the filters of each group."""
    patches, results, scratch, _ = workspace
    for group in range(plan.groups):
        filters = w.reshape(-1, w.shape[-1])
        if scratch.size:  # Those of a group, in the order of the elements of a patch.
            ordered = plan.of_group(w.reshape(-1, *w.shape[-2:]), group)
            ordered = ordered.transpose(0, 2, 1) if plan.is_turned else ordered
            copying.copy(xp, scratch.reshape(ordered.shape), ordered)
            filters = scratch.reshape(plan.depth, plan.width)
        is_transposed = plan.is_turned and not scratch.size
        for rows, matrix in _matrices(xp, x, group, plan, patches):
            part = plan.of_group(out.reshape(plan.positions, -1)[rows], group)
            product = results[: part.size].reshape(part.shape) if results.size else part
            xp.matmul(product, matrix, filters, transpose_a=False, transpose_b=is_transposed)
            if results.size:
                copying.copy(xp, part, product)


def _add_up(xp: Launcher, out: Any, x: Any, g: Any, plan: _Plan, workspace: Any) -> None:
    """Write the products of patches with the results' gradients of each group."""
    patches, results, scratch, products = workspace
    for group in range(plan.groups):
        target = total = plan.of_group(out.reshape(plan.depth, -1), group)
        if scratch.size:
            total = scratch.reshape(target.shape)
        count = 0
        for rows, matrix in _matrices(xp, x, group, plan, patches):
            if count == _PARTS:
                reduction_kernels.add_parts(xp, products[count], products[:count])
                xp.copy(products[0], products[count])
                count = 1
            part = plan.of_group(g.reshape(plan.positions, -1)[rows], group)
            if results.size:
                copying.copy(xp, results[: part.size].reshape(part.shape), part)
                part = results[: part.size].reshape(part.shape)
            product = products[count].reshape(target.shape) if products.size else total
            xp.matmul(product, matrix, part, transpose_a=True, transpose_b=False)
            count += 1
        if products.size:
            reduction_kernels.add_parts(xp, total, products[:count])
        if scratch.size:
            copying.copy(xp, target, total)


def _workspace(a: Spec, b: Spec, *, kind: str, sizes: Shape = (), **attrs: Any) -> tuple[Spec, ...]:
    """Return memory for patches, a group's results and filters, and the products of blocks."""
    dtype = a[1]
    plan = _plan(kind, a[0], b[0], dtype, sizes, **attrs)
    is_grouped, filters = plan.groups > 1, plan.depth * plan.width
    blocks = plan.blocks if kind == "filters" and plan.blocks > 1 else 0
    scratch = filters if is_grouped or (plan.is_turned and plan.share) else 0
    counts = (plan.share * plan.depth, is_grouped * plan.share * plan.width, scratch)
    parts = ((min(blocks, _PARTS + 1), filters), reduction_kernels.dtype_of_parts(dtype))
    return (*(((count,), dtype) for count in counts), parts)


def _convolve(
    xp: Launcher,
    out: Any,
    a: Any,
    b: Any,
    *,
    kind: str,
    workspace: Any,
    sizes: Any = (),
    **attrs: Any,
) -> None:
    if not (out.size and a.size and b.size):  # Sums of nothing.
        xp.clear(out)
        return
    plan = _plan(kind, a.shape, b.shape, out.dtype, sizes, **attrs)
    compute = _add_up if kind == "filters" else _multiply
    inputs = (b, a) if kind == "images" else (a, b)
    compute(xp, out, *inputs, plan, workspace)


# ---------------------------------------------------------------------------- depthwise


def _depthwise(
    xp: Launcher, out: Any, *inputs: Any, is_turned: bool, sizes: Shape = (), **attrs: Any
) -> None:
    if not out.size:
        return
    values, filters = reversed(inputs) if is_turned else inputs
    images = out if is_turned else values
    windows = windows_of(images.shape[1:-1], filters.shape[:-2], **attrs)
    index = windows.index_dtype(out.size, values.size, filters.size)
    args = (out, values, filters, *map(np.int64, (out.size, *filters.shape[-2:])), windows.layout)
    text = _depthwise_source(out.dtype, is_turned, index)
    launch_for_each(xp, text, "depthwise", out.size, args)


def _depthwise_filters(
    xp: Launcher, out: Any, x: Any, g: Any, *, sizes: Shape, workspace: Any, **attrs: Any
) -> None:
    (sums,) = workspace
    if not g.size:
        xp.clear(out)
        return
    windows, length = windows_of(x.shape[1:-1], sizes[:-2], **attrs), math.prod(g.shape[:-1])
    index = windows.index_dtype(x.size, g.size, out.size)
    numbers = (sums.size, out.size, length, -(-length // len(sums)), *sizes[-2:])
    args = (sums, x, g, *map(np.int64, numbers), windows.layout)
    launch_for_each(xp, _filters_source(x.dtype, index), "depthwise_filters", sums.size, args)
    reduction_kernels.add_parts(xp, out, sums)


def _sums(x: Spec, g: Spec, *, sizes: Shape, **attrs: Any) -> tuple[Spec, ...]:
    """Return memory for the sums of so many parts that a card is busy."""
    columns = math.prod(sizes)
    parts = max(1, min(math.prod(g[0][:-1]) // _LEAST, _THREADS // max(1, columns)))
    return (((parts, columns), reduction_kernels.dtype_of_parts(g[1])),)


KERNELS: dict[str, DeviceKernel] = {
    **{
        name: DeviceKernel(partial(_convolve, kind=kind), partial(_workspace, kind=kind))
        for kind, names in (
            ("forward", ("Conv2D", "Conv3D")),
            ("images", ("Conv2DBackpropInput", "Conv3DBackpropInputV2")),
            ("filters", ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")),
        )
        for name in names
    },
    "DepthwiseConv2dNative": DeviceKernel(partial(_depthwise, is_turned=False)),
    "DepthwiseConv2dNativeBackpropInput": DeviceKernel(partial(_depthwise, is_turned=True)),
    "DepthwiseConv2dNativeBackpropFilter": DeviceKernel(_depthwise_filters, _sums),
}
