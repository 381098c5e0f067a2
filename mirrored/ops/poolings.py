"""Pooling: the largest or the mean element of each window, and their gradients.

Images have the axes (batch, spatial axes, channels). The host makes one pass for each tap over a
block of windows that stays in the cache. Padding is never an element: the largest of a window and
the mean of one are of the elements that are there.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Gradient, Grads, Kernel, Op, OpCall, define_op
from mirrored.ops.spec import (
    FLOATS,
    NUMBERS,
    DType,
    Shape,
    TensorSpec,
    bool_,
    check_same_dtype,
    number_limits,
    shape_text,
)
from mirrored.ops.tensor import Tensor
from mirrored.ops.windows import (
    Axis,
    Block,
    axes_of,
    blocks_of_passes,
    check_rank,
    is_covered,
    scratch_shape,
    taps_in,
)


def _axes(name: str, x: Shape, *, window: Shape, **windows: Any) -> tuple[Axis, ...]:
    return axes_of(name, x[1:-1], window, **windows)


def _windows_of(block: Block, windows: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return the place of windows in scratch memory that has those of one block."""
    images, rows, *others = windows
    first_image, first_row = block.images.start, block.rows.start
    return (
        slice(images.start - first_image, images.stop - first_image),
        slice(rows.start - first_row, rows.stop - first_row),
        *others,
    )


# ---------------------------------------------------------------------------- the largest


def _max(xp: Any, out: Any, x: Any, **attrs: Any) -> None:
    if not out.size:
        return
    # TensorFlow begins with the least finite number, and returns it where all are less.
    axes, lowest = _axes("", x.shape, **attrs), number_limits(x.dtype)[0]
    for block in blocks_of_passes(x.shape, axes, x.itemsize):
        taps = list(taps_in(axes, block))
        if taps and is_covered(axes, block, taps[0][1]):
            _, windows, elements = taps.pop(0)
            # It passes over NaN, as TensorFlow does.
            xp.fmax(x[elements], lowest, out=out[windows])
        else:
            xp.copyto(out[block.images, block.rows], lowest)
        for _, windows, elements in taps:
            to = out[windows]
            xp.fmax(to, x[elements], out=to)


def _max_scratch(
    x: TensorSpec, y: TensorSpec, g: TensorSpec, **attrs: Any
) -> tuple[TensorSpec, ...]:
    shape = scratch_shape(x.shape, _axes("", x.shape, **attrs), x.dtype.itemsize)
    return TensorSpec(shape, bool_), TensorSpec(shape, bool_), TensorSpec(shape, x.dtype)


def _bits(array: Any) -> Any:
    """Return floats as integers: times 0 or 1 they are 0 or themselves, infinite or not."""
    return array.view(f"i{array.itemsize}")


def _first_largest(xp: Any, block: Block, axes: Any, x: Any, y: Any, workspace: Any) -> Any:
    """Yield each tap's windows and elements, and where it is the first largest of its window."""
    here, is_open, _ = workspace
    xp.copyto(is_open, True)
    taps = list(taps_in(axes, block))
    for _, windows, elements in taps:
        place = _windows_of(block, windows)
        xp.equal(x[elements], y[windows], out=here[place])
        xp.logical_and(here[place], is_open[place], out=here[place])
        if len(taps) > 1:
            xp.not_equal(is_open[place], here[place], out=is_open[place])
        yield windows, elements, place


def _max_grad(xp: Any, out: Any, x: Any, y: Any, g: Any, *, workspace: Any, **attrs: Any) -> None:
    if not out.size:
        return
    xp.copyto(out, 0)
    here, _, part = workspace
    axes = _axes("", x.shape, **attrs)
    are_apart = all(axis.stride > (axis.taps - 1) * axis.dilation for axis in axes)
    for block in blocks_of_passes(x.shape, axes, x.itemsize):
        for windows, elements, place in _first_largest(xp, block, axes, x, y, workspace):
            if are_apart:
                xp.multiply(_bits(g[windows]), here[place], out=_bits(out[elements]))
                continue
            xp.multiply(_bits(g[windows]), here[place], out=_bits(part[place]))
            xp.add(out[elements], part[place], out=out[elements])


def _max_grad_grad(
    xp: Any, out: Any, x: Any, y: Any, u: Any, *, workspace: Any, **attrs: Any
) -> None:
    if not out.size:
        return
    xp.copyto(out, 0)
    here, _, part = workspace
    axes = _axes("", x.shape, **attrs)
    for block in blocks_of_passes(x.shape, axes, x.itemsize):
        for windows, elements, place in _first_largest(xp, block, axes, x, y, workspace):
            xp.multiply(_bits(u[elements]), here[place], out=_bits(part[place]))
            xp.add(out[windows], part[place], out=out[windows])


# ---------------------------------------------------------------------------- the mean


def _counts(axes: tuple[Axis, ...]) -> list[Any]:
    """Return how many elements the windows along each axis have, to divide values of them by."""
    factors = []
    rank = len(axes)
    for number, axis in enumerate(axes):
        counts = np.zeros(axis.windows, np.int64)
        for tap in range(axis.taps):
            counts[axis.windows_of(tap, 0, axis.windows)[0]] += 1
        factors.append(np.maximum(counts, 1).reshape(-1, *(1,) * (rank - number)))
    return factors


def _divide(xp: Any, out: Any, counts_of_axes: list[Any], rows: slice) -> None:
    """Divide values of windows by the number of elements that each has."""
    common = 1
    for number, counts in enumerate(counts_of_axes):
        if (counts == counts.flat[0]).all():
            common *= int(counts.flat[0])
        else:
            part = counts[rows] if number == 0 else counts
            xp.divide(out, part.astype(out.dtype), out=out)
    xp.divide(out, common, out=out)


def _mean(xp: Any, out: Any, x: Any, **attrs: Any) -> None:
    if not out.size:
        return
    axes = _axes("", x.shape, **attrs)
    counts = _counts(axes)
    for block in blocks_of_passes(x.shape, axes, x.itemsize):
        part = out[block.images, block.rows]
        xp.copyto(part, 0)
        for _, windows, elements in taps_in(axes, block):
            xp.add(out[windows], x[elements], out=out[windows])
        _divide(xp, part, counts, block.rows)


def _mean_grad_scratch(g: TensorSpec, *, sizes: Shape, **attrs: Any) -> tuple[TensorSpec, ...]:
    x = (*g.shape[:1], *sizes, *g.shape[-1:])
    shape = scratch_shape(x, _axes("", x, **attrs), g.dtype.itemsize)
    return (TensorSpec(shape, g.dtype),)


def _mean_grad(xp: Any, out: Any, g: Any, *, sizes: Shape, workspace: Any, **attrs: Any) -> None:
    xp.copyto(out, 0)
    if not g.size:
        return
    axes = _axes("", out.shape, **attrs)
    counts = _counts(axes)
    for block in blocks_of_passes(out.shape, axes, out.itemsize):
        part = g[block.images, block.rows]
        scaled = workspace[0][: part.shape[0], : part.shape[1]]
        xp.copyto(scaled, part)
        _divide(xp, scaled, counts, block.rows)
        for _, windows, elements in taps_in(axes, block):
            place = _windows_of(block, windows)
            xp.add(out[elements], scaled[place], out=out[elements])


# ---------------------------------------------------------------------------- the ops


def _rank(name: str) -> int:
    """Return the number of axes of an op's inputs."""
    return 5 if "3D" in name else 4


def _infer_pooled(name: str, x: TensorSpec, **attrs: Any) -> TensorSpec:
    check_rank(name, "input", x, _rank(name))
    counts = (axis.windows for axis in _axes(name, x.shape, **attrs))
    return TensorSpec((x.shape[0], *counts, x.shape[-1]), x.dtype)


def _infer_max_grad(
    name: str, x: TensorSpec, y: TensorSpec, g: TensorSpec, **attrs: Any
) -> TensorSpec:
    check_same_dtype(name, x, y, g)
    _check_shape(name, g, _infer_pooled(name, x, **attrs))
    return x


def _infer_max_grad_grad(
    name: str, x: TensorSpec, y: TensorSpec, u: TensorSpec, **attrs: Any
) -> TensorSpec:
    check_same_dtype(name, x, y, u)
    _check_shape(name, u, x)
    return y


def _infer_mean_grad(name: str, g: TensorSpec, *, sizes: Shape, **attrs: Any) -> TensorSpec:
    check_rank(name, "out_backprop", g, _rank(name))
    x = TensorSpec((g.shape[0], *sizes, g.shape[-1]), g.dtype)
    _check_shape(name, g, _infer_pooled(name, x, **attrs))
    return x


def _check_shape(name: str, spec: TensorSpec, expected: TensorSpec) -> None:
    if spec.shape != expected.shape:
        raise InvalidArgumentError(
            f"Expected grad shape to be {shape_text(expected.shape)}, but got "
            f"{shape_text(spec.shape)} [Op:{name}]"
        )


def _grad_max(call: OpCall, g: Tensor) -> Grads:
    return [POOLINGS[f"{call.op.name}Grad"](call.inputs[0], call.output, g, **call.attrs)]


def _grad_max_grad(call: OpCall, u: Tensor) -> Grads:
    x, y, _ = call.inputs
    return [None, None, lambda: POOLINGS[f"{call.op.name}Grad"](x, y, u, **call.attrs)]


def _grad_max_grad_grad(call: OpCall, g: Tensor) -> Grads:
    x, y, _ = call.inputs
    return [None, None, lambda: POOLINGS[call.op.name.removesuffix("Grad")](x, y, g, **call.attrs)]


def _grad_mean(call: OpCall, g: Tensor) -> Grads:
    sizes = call.inputs[0].shape[1:-1]
    return [POOLINGS[f"{call.op.name}Grad"](g, sizes=sizes, **call.attrs)]


def _grad_mean_grad(call: OpCall, u: Tensor) -> Grads:
    attrs = {name: value for name, value in call.attrs.items() if name != "sizes"}
    return [POOLINGS[call.op.name.removesuffix("Grad")](u, **attrs)]


def _enter(
    name: str,
    infer: Callable[..., TensorSpec],
    kernel: Kernel,
    gradient: Gradient,
    workspace: Callable[..., tuple[TensorSpec, ...]] | None = None,
    dtypes: frozenset[DType] = FLOATS,
) -> None:
    POOLINGS[name] = define_op(
        name=name,
        infer=partial(infer, name),
        kernel=kernel,
        gradient=gradient,
        dtypes=dtypes,
        workspace=workspace,
    )


POOLINGS: dict[str, Op] = {}  # By name, with their gradients.
for _largest, _mean_of in (("MaxPool", "AvgPool"), ("MaxPool3D", "AvgPool3D")):
    _enter(_largest, _infer_pooled, _max, _grad_max, dtypes=NUMBERS)
    _enter(f"{_largest}Grad", _infer_max_grad, _max_grad, _grad_max_grad, _max_scratch)
    _enter(
        f"{_largest}GradGrad",
        _infer_max_grad_grad,
        _max_grad_grad,
        _grad_max_grad_grad,
        _max_scratch,
    )
    _enter(_mean_of, _infer_pooled, _mean, _grad_mean)
    _enter(f"{_mean_of}Grad", _infer_mean_grad, _mean_grad, _grad_mean_grad, _mean_grad_scratch)
