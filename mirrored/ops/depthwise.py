"""Depthwise convolutions: each channel of images with filters of its own, and their gradients.

Images have the axes (batch, rows, columns, channels), filters (rows, columns, channels, filters of
each channel). The host makes two passes for each tap over a block of windows that stays in the
cache: a product and a sum.
"""

import math
from typing import Any

from mirrored.errors import InvalidArgumentError
from mirrored.ops.convolutions import define
from mirrored.ops.spec import Shape, TensorSpec, check_same_dtype, shape_text
from mirrored.ops.windows import axes_of, blocks_of_passes, check_rank, scratch_shape, taps_in


def _shape_of(name: str, x: TensorSpec, w: TensorSpec, **attrs: Any) -> Shape:
    check_same_dtype(name, x, w)
    check_rank(name, "input", x, 4)
    check_rank(name, "filter", w, 4)
    if x.shape[-1] != w.shape[-2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[-2]} [Op:{name}]"
        )
    if 0 in w.shape[:2]:
        raise InvalidArgumentError(
            "A filter must have at least one row and one column. Received filters of shape "
            f"{shape_text(w.shape)} [Op:{name}]"
        )
    counts = (axis.windows for axis in axes_of(name, x.shape[1:-1], w.shape[:-2], **attrs))
    return (x.shape[0], *counts, w.shape[-1] * w.shape[-2])


# ---------------------------------------------------------------------------- kernels


def _passes(xp: Any, x: Any, w: Any, out: Any, products: Any, attrs: Any) -> Any:
    """Yield views for each filter and tap: of images, of results, of the tap's row of the filters.

    Args:
        xp: What computes.
        x: The images, or their gradient.
        w: The filters, or their gradient.
        out: The results, or their gradient.
        products: Scratch memory for the values of a block.
        attrs: Strides, padding and dilations.
    """
    axes = axes_of("", x.shape[1:-1], w.shape[:-2], **attrs)
    filters = w.shape[-1]
    split = out.reshape(*out.shape[:-1], x.shape[-1], filters)
    for block in blocks_of_passes(x.shape, axes, x.itemsize):
        for number in range(filters):
            for tap, windows, elements in taps_in(axes, block):
                to = split[(*windows, ..., number)]
                scratch = products[: to.size].reshape(to.shape)
                yield x[elements], w[(*tap, ..., number)], to, scratch


def _scratch(x: Shape, w: Shape, dtype: Any, attrs: Any) -> tuple[TensorSpec, ...]:
    axes = axes_of("", x[1:-1], w[:-2], **attrs)
    return (TensorSpec((math.prod(scratch_shape(x, axes, dtype.itemsize)),), dtype),)


def _forward(xp: Any, out: Any, x: Any, w: Any, *, workspace: Any, **attrs: Any) -> None:
    xp.copyto(out, 0)
    if not out.size:
        return
    for images, filters, to, products in _passes(xp, x, w, out, workspace[0], attrs):
        xp.multiply(images, filters, out=products)
        xp.add(to, products, out=to)


def _to_images(
    xp: Any, out: Any, w: Any, g: Any, *, sizes: Shape, workspace: Any, **attrs: Any
) -> None:
    xp.copyto(out, 0)
    if not (out.size and g.size):
        return
    for images, filters, results, products in _passes(xp, out, w, g, workspace[0], attrs):
        xp.multiply(results, filters, out=products)
        xp.add(images, products, out=images)


def _filters_scratch(
    x: TensorSpec, g: TensorSpec, *, sizes: Shape, **attrs: Any
) -> tuple[TensorSpec, ...]:
    (products,) = _scratch(x.shape, sizes, x.dtype, attrs)
    return products, TensorSpec((x.shape[-1],), x.dtype)


def _to_filters(
    xp: Any, out: Any, x: Any, g: Any, *, sizes: Shape, workspace: Any, **attrs: Any
) -> None:
    xp.copyto(out, 0)
    if not (out.size and g.size):
        return
    sums = workspace[1]
    for images, filters, results, products in _passes(xp, x, out, g, workspace[0], attrs):
        xp.multiply(images, results, out=products)
        xp.add.reduce(products.reshape(-1, sums.size), axis=0, dtype=sums.dtype, out=sums)
        xp.add(filters, sums, out=filters)


DEPTHWISE = define(
    "DepthwiseConv2dNative",
    _shape_of,
    (_forward, _to_images, _to_filters),
    (
        lambda x, w, **attrs: _scratch(x.shape, w.shape, x.dtype, attrs),
        lambda w, g, *, sizes, **attrs: _scratch((g.shape[0], *sizes), w.shape, g.dtype, attrs),
        _filters_scratch,
    ),
    by_products=False,
)
