"""Convolutions: products of patches of images with filters, and their gradients.

Images have the axes (batch, spatial axes, channels), filters (spatial axes, channels of a group,
outputs). The host gathers patches block by block into a workspace of bounded size and multiplies
each block by BLAS: im2col (Chellapilla, Puri and Simard 2006), a block at a time. Where a window is
one element nothing is gathered. The convolution, its gradient by the images and its gradient by the
filters are linear in both inputs, so they are the gradients of one another.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numpy.lib.stride_tricks import as_strided

from mirrored.backends.product_settings import product
from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Gradient, Grads, Op, OpCall, define_op
from mirrored.ops.spec import FLOATS, DType, Shape, TensorSpec, check_same_dtype, shape_text
from mirrored.ops.tensor import Tensor
from mirrored.ops.windows import Axis, Block, Phase, axes_of, blocks, check_rank, phases_of

# With fewer channels the longest runs in memory are along the windows, and not inside a patch.
_LONG_RUN = 8

Workspace = tuple[Any, Any, Any, Any]  # Padded images, patches, filters and results: flat arrays.


class _Gathering(NamedTuple):
    """How the patches of images are gathered.

    Attributes:
        axes: The windows along each spatial axis.
        channels: The number of channels that a patch has.
        blocks: The blocks; none: the images are the matrix of their patches.
        padded: The shape of a block's padded images; None: no window reads padding.
        positions: The number of windows of the largest block.
    """

    axes: tuple[Axis, ...]
    channels: int
    blocks: tuple[Block, ...]
    padded: Shape | None
    positions: int

    @property
    def depth(self) -> int:
        """The number of elements of a patch."""
        return self.channels * math.prod(axis.taps for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many elements the padded images and the patches of a block take."""
        return math.prod(self.padded or (0,)), self.positions * self.depth if self.blocks else 0


@lru_cache(maxsize=128)
def _gathering(
    images: int, axes: tuple[Axis, ...], channels: int, groups: int, itemsize: int
) -> _Gathering:
    points = all((axis.taps, axis.stride, axis.before) == (1, 1, 0) for axis in axes)
    if points and groups == 1 and all(axis.windows == axis.size for axis in axes):
        positions = images * math.prod(axis.windows for axis in axes)
        return _Gathering(axes, channels, (), None, positions)
    depth = channels * math.prod(axis.taps for axis in axes)
    parts = blocks(images, axes, depth * itemsize)
    together = parts[0].images.stop if parts else 0
    rows = parts[0].rows.stop if parts else 0
    padded = None
    if not all(axis.is_inside for axis in axes):
        padded = (together, *(axis.stop - axis.start for axis in axes), channels)
    positions = together * rows * math.prod(axis.windows for axis in axes[1:])
    return _Gathering(axes, channels, parts, padded, positions)


def _patches(
    xp: Any, x: Any, gathering: _Gathering, workspace: Workspace
) -> Iterator[tuple[Block, Any]]:
    """Gather one block after the other, and yield each with the matrix of its patches.

    Args:
        xp: What computes.
        x: The images, or a group's channels of them.
        gathering: How they are gathered.
        workspace: Scratch memory.
    """
    axes, channels, depth = gathering.axes, gathering.channels, gathering.depth
    if not gathering.blocks:
        yield Block(slice(0, x.shape[0]), slice(0, axes[0].windows)), x.reshape(-1, depth)
        return
    rank, taps = len(axes), tuple(axis.taps for axis in axes)
    # The elements that windows read, and where they are among padding.
    read = tuple(
        slice(max(0, axis.start), max(0, axis.start, min(axis.size, axis.stop))) for axis in axes
    )
    padded = None
    if gathering.padded is not None:
        padded = workspace[0].reshape(gathering.padded)
        xp.copyto(padded, 0)
        inside = tuple(
            slice(part.start - axis.start, part.stop - axis.start)
            for part, axis in zip(read, axes, strict=True)
        )
    in_place = None
    for block in gathering.blocks:
        count = block.images.stop - block.images.start
        images = x[(block.images, *read)]
        if padded is not None:
            if block.images != in_place and images.size:
                xp.copyto(padded[(slice(count), *inside)], images)
            in_place, images = block.images, padded[:count]
        first, *steps, last = images.strides
        windows = (block.rows.stop - block.rows.start, *(axis.windows for axis in axes[1:]))
        view = as_strided(
            images[:, block.rows.start * axes[0].stride :],
            (count, *windows, *taps, channels),
            (
                first,
                *(step * axis.stride for step, axis in zip(steps, axes, strict=True)),
                *(step * axis.dilation for step, axis in zip(steps, axes, strict=True)),
                last,
            ),
            writeable=False,
        )
        patches = workspace[1][: view.size]
        if channels >= _LONG_RUN:
            xp.copyto(patches.reshape(view.shape), view)
            yield block, patches.reshape(-1, depth)
        else:
            turned = view.transpose(*range(rank + 1, 2 * rank + 2), *range(rank + 1))
            xp.copyto(patches.reshape(turned.shape), turned)
            yield block, patches.reshape(depth, -1).T


def _multiply_patches(
    xp: Any, out: Any, x: Any, filters: Any, gathering: _Gathering, workspace: Workspace
) -> None:
    """Write into any view the products of patches with filters of shape (depth, outputs)."""
    for block, matrix in _patches(xp, x, gathering, workspace):
        part = out[block.images, block.rows]
        if part.flags.c_contiguous:
            product(xp, matrix, filters, part.reshape(-1, part.shape[-1]))
            continue
        result = workspace[3][: part.size]
        product(xp, matrix, filters, result.reshape(-1, part.shape[-1]))
        xp.copyto(part, result.reshape(part.shape))


# ---------------------------------------------------------------------------- sizes


class _Sizes(NamedTuple):
    """The sizes of a convolution.

    Attributes:
        images: The number of images.
        axes: The windows along each spatial axis.
        groups: The number of groups.
        inputs: The channels of a group.
        outputs: The filters of a group.
        itemsize: The bytes of an element.
    """

    images: int
    axes: tuple[Axis, ...]
    groups: int
    inputs: int
    outputs: int
    itemsize: int

    @property
    def shape(self) -> Shape:
        """The shape of the convolution's result."""
        return (self.images, *(axis.windows for axis in self.axes), self.groups * self.outputs)

    @property
    def parts(self) -> Iterator[tuple[slice, slice]]:
        """The channels and the outputs of each group."""
        for group in range(self.groups):
            yield (
                slice(group * self.inputs, (group + 1) * self.inputs),
                slice(group * self.outputs, (group + 1) * self.outputs),
            )

    @property
    def forward(self) -> _Gathering:
        """How the patches of the images are gathered."""
        return _gathering(self.images, self.axes, self.inputs, self.groups, self.itemsize)

    @property
    def backward(self) -> list[tuple[tuple[Phase, ...], _Gathering]]:
        """For each phase of the images how the patches of the results are gathered."""
        return [
            (
                phases,
                _gathering(
                    self.images,
                    tuple(phase.axis for phase in phases),
                    self.outputs,
                    self.groups,
                    self.itemsize,
                ),
            )
            for phases in itertools.product(*map(phases_of, self.axes))
        ]


def _sized(name: str, x: Shape, w: Shape, dtype: DType, **attrs: Any) -> _Sizes:
    axes = axes_of(name, x[1:-1], w[:-2], **attrs)
    groups = x[-1] // w[-2]
    return _Sizes(x[0], axes, groups, w[-2], w[-1] // groups, dtype.itemsize)


def _scratch(dtype: DType, *sizes: int) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec((size,), dtype) for size in sizes)


# ---------------------------------------------------------------------------- kernels


def _forward_workspace(x: TensorSpec, w: TensorSpec, **attrs: Any) -> tuple[TensorSpec, ...]:
    sizes = _sized("", x.shape, w.shape, x.dtype, **attrs)
    plan = sizes.forward
    of_group = sizes.outputs if sizes.groups > 1 else 0
    return _scratch(x.dtype, *plan.sizes, plan.depth * of_group, plan.positions * of_group)


def _forward(xp: Any, out: Any, x: Any, w: Any, *, workspace: Workspace, **attrs: Any) -> None:
    if not out.size:
        return
    sizes = _sized("", x.shape, w.shape, x.dtype, **attrs)
    plan = sizes.forward
    for channels, outputs in sizes.parts:
        filters = w.reshape(plan.depth, -1)
        if sizes.groups > 1:
            filters = workspace[2].reshape(plan.depth, -1)
            xp.copyto(filters.reshape(*w.shape[:-1], -1), w[..., outputs])
        _multiply_patches(xp, out[..., outputs], x[..., channels], filters, plan, workspace)


def _images_workspace(
    w: TensorSpec, g: TensorSpec, *, sizes: Shape, **attrs: Any
) -> tuple[TensorSpec, ...]:
    known = _sized("", (g.shape[0], *sizes), w.shape, g.dtype, **attrs)
    plans = [plan for _, plan in known.backward]
    of_part = 0 if known.groups == len(plans) == 1 else known.inputs
    needs = [(*plan.sizes, plan.depth * known.inputs, plan.positions * of_part) for plan in plans]
    return _scratch(g.dtype, *map(max, zip((0, 0, 0, 0), *needs, strict=True)))


def _to_images(
    xp: Any, out: Any, w: Any, g: Any, *, sizes: Shape, workspace: Workspace, **attrs: Any
) -> None:
    if not out.size:
        return
    known = _sized("", out.shape, w.shape, g.dtype, **attrs)
    for phases, plan in known.backward:
        part = out[(slice(None), *(phase.elements for phase in phases))]
        if not plan.depth or not g.size:
            xp.copyto(part, 0)
            continue
        padded = workspace[0][: plan.sizes[0]]
        used = w[tuple(phase.taps for phase in phases)].swapaxes(-1, -2)
        for channels, outputs in known.parts:
            group = used[..., outputs, :]
            filters = workspace[2][: group.size].reshape(group.shape)
            xp.copyto(filters, group)
            _multiply_patches(
                xp,
                part[..., channels],
                g[..., outputs],
                filters.reshape(plan.depth, -1),
                plan,
                (padded, *workspace[1:]),
            )


def _filters_workspace(
    x: TensorSpec, g: TensorSpec, *, sizes: Shape, **attrs: Any
) -> tuple[TensorSpec, ...]:
    known = _sized("", x.shape, sizes, x.dtype, **attrs)
    plan, grouped = known.forward, known.groups > 1
    sums = (len(plan.blocks) > 1) + grouped
    results = plan.positions * known.outputs if grouped else 0
    return _scratch(x.dtype, *plan.sizes, sums * plan.depth * known.outputs, results)


def _to_filters(
    xp: Any, out: Any, x: Any, g: Any, *, sizes: Shape, workspace: Workspace, **attrs: Any
) -> None:
    if not g.size:
        xp.copyto(out, 0)
        return
    known = _sized("", x.shape, sizes, x.dtype, **attrs)
    plan = known.forward
    size = plan.depth * known.outputs
    for channels, outputs in known.parts:
        total = out if known.groups == 1 else workspace[2][-size:]
        total = target = total.reshape(plan.depth, -1)
        for block, matrix in _patches(xp, x[..., channels], plan, workspace):
            part = g[block.images, block.rows, ..., outputs]
            if not part.flags.c_contiguous:
                result = workspace[3][: part.size].reshape(part.shape)
                xp.copyto(result, part)
                part = result
            product(xp, matrix.T, part.reshape(-1, known.outputs), target)
            if target is not total:
                xp.add(total, target, out=total)
            target = workspace[2][:size].reshape(plan.depth, -1)
        if known.groups > 1:
            xp.copyto(out[..., outputs], total.reshape(*sizes[:-1], -1))


# ---------------------------------------------------------------------------- the ops


class Convolutions(NamedTuple):
    """The ops of one kind of convolution.

    Attributes:
        forward: From images and filters to their convolution.
        to_images: From filters and the convolution's gradient to that of the images.
        to_filters: From images and the convolution's gradient to that of the filters.
    """

    forward: Op
    to_images: Op
    to_filters: Op


def define(
    name: str,
    shape_of: Callable[..., Shape],
    kernels: Sequence[Callable[..., None]],
    workspaces: Sequence[Callable[..., tuple[TensorSpec, ...]]],
    *,
    version: str = "",
    by_products: bool = True,
) -> Convolutions:
    """Define a kind of convolution and its gradients.

    Args:
        name: TensorFlow's name of the convolution.
        shape_of: From an op's name, the specs of images and filters and the attributes to the
            shape of the convolution; raises on bad ones.
        kernels: Those of the three ops.
        workspaces: Their functions for scratch memory.
        version: What TensorFlow's names of the gradients end with.
        by_products: Whether they are matrix products.
    """
    images_name, filters_name = f"{name}BackpropInput{version}", f"{name}BackpropFilter{version}"

    def infer(x: TensorSpec, w: TensorSpec, **attrs: Any) -> TensorSpec:
        return TensorSpec(shape_of(name, x, w, **attrs), x.dtype)

    def infer_images(w: TensorSpec, g: TensorSpec, *, sizes: Shape, **attrs: Any) -> TensorSpec:
        check_same_dtype(images_name, w, g)
        x = TensorSpec((*g.shape[:1], *sizes), g.dtype)
        _check_gradient(images_name, shape_of(images_name, x, w, **attrs), g)
        return x

    def infer_filters(x: TensorSpec, g: TensorSpec, *, sizes: Shape, **attrs: Any) -> TensorSpec:
        w = TensorSpec(sizes, g.dtype)
        _check_gradient(filters_name, shape_of(filters_name, x, w, **attrs), g)
        return w

    def by_both(call: OpCall, g: Tensor) -> Grads:
        x, w = call.inputs
        return [
            lambda: ops.to_images(w, g, sizes=x.shape[1:], **call.attrs),
            lambda: ops.to_filters(x, g, sizes=w.shape, **call.attrs),
        ]

    def of_images(call: OpCall, u: Tensor) -> Grads:
        (w, g), windows = call.inputs, _windows(call)
        return [
            lambda: ops.to_filters(u, g, sizes=w.shape, **windows),
            lambda: ops.forward(u, w, **windows),
        ]

    def of_filters(call: OpCall, u: Tensor) -> Grads:
        (x, g), windows = call.inputs, _windows(call)
        return [
            lambda: ops.to_images(u, g, sizes=x.shape[1:], **windows),
            lambda: ops.forward(x, u, **windows),
        ]

    def op(
        i: int, name: str, infer: Callable[..., TensorSpec], gradient: Gradient, flops: Any
    ) -> Op:
        return define_op(
            name=name,
            infer=infer,
            kernel=kernels[i],
            gradient=gradient,
            dtypes=FLOATS,
            workspace=workspaces[i],
            flops=flops if by_products else None,
            blocked=True,
        )

    ops = Convolutions(
        op(0, name, infer, by_both, lambda out, x, w, **_: _flops(out, w)),
        op(1, images_name, infer_images, of_images, lambda out, w, g, **_: _flops(g, w)),
        op(2, filters_name, infer_filters, of_filters, lambda out, x, g, **_: _flops(g, out)),
    )
    return ops


def _flops(results: TensorSpec, filters: TensorSpec) -> int:
    return int(2 * math.prod(results.shape) * math.prod(filters.shape[:-1]))


def _windows(call: OpCall) -> dict[str, Any]:
    return {name: value for name, value in call.attrs.items() if name != "sizes"}


def _check_gradient(name: str, expected: Shape, g: TensorSpec) -> None:
    if g.shape != expected:
        raise InvalidArgumentError(
            f"Size of out_backprop doesn't match computed: actual = {shape_text(g.shape)}, "
            f"computed = {shape_text(expected)} [Op:{name}]"
        )


def _shape_of(name: str, x: TensorSpec, w: TensorSpec, **attrs: Any) -> Shape:
    rank = len(attrs["strides"]) + 2
    check_same_dtype(name, x, w)
    check_rank(name, "convolution input", x, rank)
    check_rank(name, "convolution filter", w, rank)
    depth, of_group, outputs = x.shape[-1], *w.shape[-2:]
    if 0 in w.shape[:-1]:
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero). Received "
            f"filters of shape {shape_text(w.shape)} [Op:{name}]"
        )
    if depth % of_group or not depth:
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {depth} vs {of_group} "
            f"[Op:{name}]"
        )
    if outputs % (depth // of_group):
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {outputs} vs "
            f"{depth // of_group} [Op:{name}]"
        )
    return _sized(name, x.shape, w.shape, x.dtype, **attrs).shape


_KERNELS = (_forward, _to_images, _to_filters)
_WORKSPACES = (_forward_workspace, _images_workspace, _filters_workspace)
CONV_2D = define("Conv2D", _shape_of, _KERNELS, _WORKSPACES)
CONV_3D = define("Conv3D", _shape_of, _KERNELS, _WORKSPACES, version="V2")
