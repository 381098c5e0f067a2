"""The rows of convolutions and of pooling, by the places of the elements that windows read."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from op_row import NUMBERS, Array, Case, Row, Shape

Pairs = tuple[tuple[int, int], ...]


def _counts(sizes: Shape, taps: Shape, strides: Shape, padding: Pairs, dilations: Shape) -> Shape:
    """Return how many windows there are along each axis."""
    return tuple(
        max(0, (sum((size, *ends)) - (each - 1) * dilation - 1) // stride + 1)
        for size, ends, each, stride, dilation in zip(
            sizes, padding, taps, strides, dilations, strict=True
        )
    )


def _places(
    sizes: Shape, taps: Shape, strides: Shape, padding: Pairs, dilations: Shape
) -> tuple[Array, Shape]:
    """Return which element each tap of each window reads, -1 for padding; and how many windows."""
    numbers = np.pad(np.arange(math.prod(sizes)).reshape(sizes), padding, constant_values=-1)
    counts = _counts(sizes, taps, strides, padding, dilations)
    along = [
        np.add.outer(np.arange(each) * dilation, np.arange(count) * stride).reshape(-1)
        for each, count, stride, dilation in zip(taps, counts, strides, dilations, strict=True)
    ]
    pairs = [size for pair in zip(taps, counts, strict=True) for size in pair]
    order = (*range(0, len(pairs), 2), *range(1, len(pairs), 2))
    found = numbers[np.ix_(*along)].reshape(pairs).transpose(order)
    return found.reshape(math.prod(taps), math.prod(counts)), counts


def windows_of(x: Array, taps: Shape, padded: float = 0, **attrs: Any) -> tuple[Array, Shape]:
    """Return the elements of windows, with the axes (image, tap, window, channel), and a shape.

    The shape is that of what has an element for each window.
    """
    places, counts = _places(x.shape[1:-1], taps, **attrs)
    images = x.reshape(len(x), math.prod(x.shape[1:-1]), x.shape[-1])
    ends = np.full((len(x), 1, x.shape[-1]), padded, x.dtype)
    return np.concatenate([images, ends], axis=1)[:, places], (len(x), *counts)


def images_of(values: Array, sizes: Shape, taps: Shape, **attrs: Any) -> Array:
    """Return images to whose elements the values of windows were added."""
    places, _ = _places(sizes, taps, **attrs)
    images = np.zeros((len(values), math.prod(sizes) + 1, values.shape[-1]), values.dtype)
    np.add.at(images, (slice(None), places), values)
    return images[:, :-1].reshape(len(values), *sizes, values.shape[-1])


# ---------------------------------------------------------------------------- convolutions


def convolved(x: Array, w: Array, **attrs: Any) -> Array:
    """Return a convolution by einsum of all patches."""
    taps, depth, outputs = w.shape[:-2], *w.shape[-2:]
    patches, shape = windows_of(x, taps, **attrs)
    groups = x.shape[-1] // depth
    y = np.einsum(
        "ntwgc,tcgo->nwgo",
        patches.reshape(*patches.shape[:-1], groups, depth),
        w.reshape(math.prod(taps), depth, groups, outputs // groups),
    )
    return y.reshape(*shape, outputs)


def gradient_of_images(w: Array, g: Array, sizes: Shape, **attrs: Any) -> Array:
    """Return the gradient of a convolution by its images: what it does turned around."""
    taps, depth, outputs = w.shape[:-2], *w.shape[-2:]
    groups, count = sizes[-1] // depth, math.prod(g.shape[1:-1])
    values = np.einsum(
        "nwgo,tcgo->ntwgc",
        g.reshape(len(g), count, groups, outputs // groups),
        w.reshape(math.prod(taps), depth, groups, outputs // groups),
    )
    return images_of(values.reshape(*values.shape[:3], sizes[-1]), sizes[:-1], taps, **attrs)


def gradient_of_filters(x: Array, g: Array, sizes: Shape, **attrs: Any) -> Array:
    """Return the gradient of a convolution by its filters."""
    patches, _ = windows_of(x, sizes[:-2], **attrs)
    groups = x.shape[-1] // sizes[-2]
    found = np.einsum(
        "ntwgc,nwgo->tcgo",
        patches.reshape(*patches.shape[:-1], groups, sizes[-2]),
        g.reshape(len(g), patches.shape[2], groups, sizes[-1] // groups),
    )
    return found.reshape(sizes)


def _grouped(w: Shape) -> Shape:
    """Return the shape of depthwise filters as those of groups of one channel."""
    return (*w[:-2], 1, w[-2] * w[-1])


def depthwise(x: Array, w: Array, **attrs: Any) -> Array:
    """Return a depthwise convolution as one of groups."""
    return convolved(x, w.reshape(_grouped(w.shape)), **attrs)


def depthwise_of_images(w: Array, g: Array, **attrs: Any) -> Array:
    """Return the gradient of a depthwise convolution by its images."""
    return gradient_of_images(w.reshape(_grouped(w.shape)), g, **attrs)


def depthwise_of_filters(x: Array, g: Array, sizes: Shape, **attrs: Any) -> Array:
    """Return the gradient of a depthwise convolution by its filters."""
    return gradient_of_filters(x, g, _grouped(sizes), **attrs).reshape(sizes)


# ---------------------------------------------------------------------------- pooling


def largest(x: Array, window: Shape, **attrs: Any) -> Array:
    """Return the largest element of each window."""
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    values, shape = windows_of(x, window, least, **attrs)
    return values.max(axis=1).reshape(*shape, x.shape[-1])


def _first_largest(x: Array, y: Array, window: Shape, attrs: Any) -> Array:
    """Return where in windows the first element is that is the largest one, if there is any."""
    values, _ = windows_of(x, window, np.nan, **attrs)
    hits = values == y.reshape(len(y), 1, values.shape[2], y.shape[-1])
    return np.asarray(hits & (np.cumsum(hits, axis=1) == 1))


def gradient_of_largest(x: Array, y: Array, g: Array, window: Shape, **attrs: Any) -> Array:
    """Return images to whose first largest elements the windows' gradients were added."""
    first = _first_largest(x, y, window, attrs)
    values = first * g.reshape(len(g), 1, first.shape[2], g.shape[-1])
    return images_of(values, x.shape[1:-1], window, **attrs)


def first_largest(x: Array, y: Array, u: Array, window: Shape, **attrs: Any) -> Array:
    """Return the elements of `u` where those of `x` are the first largest ones."""
    values, _ = windows_of(u, window, **attrs)
    return (values * _first_largest(x, y, window, attrs)).sum(axis=1).reshape(y.shape)


def _shares(sizes: Shape, window: Shape, attrs: Any) -> Array:
    """Return how many elements each window has, of the shape (1, 1, windows, 1)."""
    values, _ = windows_of(np.ones((1, *sizes, 1)), window, **attrs)
    return np.maximum(values.sum(axis=1, keepdims=True), 1)


def mean(x: Array, window: Shape, **attrs: Any) -> Array:
    """Return the mean of each window's elements without padding."""
    values, shape = windows_of(x, window, **attrs)
    total = values / _shares(x.shape[1:-1], window, attrs)
    return total.sum(axis=1).reshape(*shape, x.shape[-1])


def gradient_of_mean(g: Array, sizes: Shape, window: Shape, **attrs: Any) -> Array:
    """Return images to whose elements the windows' gradients were added in equal parts."""
    parts = g.reshape(len(g), 1, math.prod(g.shape[1:-1]), g.shape[-1])
    parts = parts / _shares(sizes, window, attrs)
    values = np.broadcast_to(parts, (len(g), math.prod(window), *parts.shape[2:]))
    return images_of(values, sizes, window, **attrs)


# ---------------------------------------------------------------------------- rows


class Geometry(NamedTuple):
    """Images, the taps of windows (of filters with two axes more), and where windows lie."""

    x: Shape
    w: Shape
    strides: Shape = (1, 1)
    padding: Pairs = ((0, 0), (0, 0))
    dilations: Shape = (1, 1)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes that all ops here have."""
        return {
            "strides": self.strides,
            "padding": self.padding,
            "dilations": self.dilations,
        }

    def windows(self, taps: Shape, channels: int) -> Shape:
        """Return the shape of results."""
        return (self.x[0], *_counts(self.x[1:-1], taps, **self.attrs), channels)

    def deeper(self) -> "Geometry":
        """Return the same with another axis in front of the spatial ones."""
        images, *rest = self.x
        return Geometry(
            (images, 3, *rest),
            (2, *self.w),
            (2, *self.strides),
            ((1, 0), *self.padding),
            (1, *self.dilations),
        )


SAME = ((1, 1), (1, 1))
FILTERS = {
    "small": (
        Geometry((2, 5, 4, 3), (3, 3, 3, 2), padding=SAME),
        Geometry((1, 7, 6, 8), (3, 2, 4, 4), (2, 3), ((0, 2), (1, 0))),
        Geometry((2, 6, 7, 2), (2, 3, 2, 1), dilations=(2, 3)),
        Geometry((2, 3, 2, 9), (1, 1, 9, 2)),
        Geometry((1, 9, 5, 8), (2, 1, 8, 3), (3, 2), dilations=(2, 1)),
    ),
    "large": (
        Geometry((250, 32, 32, 4), (3, 3, 4, 4), padding=SAME),
        Geometry((1, 1000, 1000, 1), (3, 3, 1, 2), (2, 2), ((1, 0), (0, 1))),
        Geometry((1000, 1, 1, 1000), (1, 1, 1000, 10)),
    ),
    "empty": (
        Geometry((0, 4, 4, 2), (3, 3, 2, 2)),
        Geometry((2, 1, 3, 2), (3, 3, 2, 1), (2, 1)),
        Geometry((2, 3, 3, 2), (2, 2, 2, 0)),
    ),
}
DEPTHWISE_FILTERS = {
    "small": (
        Geometry((2, 5, 4, 3), (3, 3, 3, 1), padding=SAME),
        Geometry((1, 7, 6, 2), (3, 2, 2, 2), (2, 3), ((0, 2), (1, 0))),
        Geometry((2, 6, 7, 1), (2, 3, 1, 3), dilations=(2, 3)),
    ),
    "large": (
        Geometry((250, 32, 32, 4), (3, 3, 4, 1), padding=SAME),
        Geometry((1, 1000, 1000, 1), (3, 3, 1, 2), (2, 2), ((1, 0), (0, 1))),
    ),
    "empty": (
        Geometry((0, 4, 4, 2), (3, 3, 2, 2)),
        Geometry((2, 1, 3, 2), (3, 3, 2, 1), (2, 1)),
    ),
}
WINDOWS = {
    "small": (
        Geometry((2, 5, 4, 3), (2, 2), (2, 2), ((0, 1), (0, 0))),
        Geometry((1, 7, 6, 2), (3, 2), (2, 1), ((1, 1), (0, 1))),
        Geometry((2, 5, 1, 1), (2, 1), (3, 1)),
        Geometry((2, 6, 5, 1), (2, 3), dilations=(2, 2)),
    ),
    "large": (
        Geometry((250, 32, 32, 4), (2, 2), (2, 2)),
        Geometry((1, 1000, 1000, 1), (3, 3), padding=SAME),
        Geometry((10, 1, 1, 99_000), (1, 1)),
    ),
    "empty": (Geometry((0, 4, 4, 2), (2, 2)), Geometry((2, 1, 3, 2), (3, 3), (2, 1))),
}


def of_filters(each: Geometry) -> tuple[Case, ...]:
    """Return cases of a convolution and its gradients."""
    return _convolutions(each, each.w[-1])


def of_depthwise(each: Geometry) -> tuple[Case, ...]:
    """Return cases of a depthwise convolution and its gradients."""
    return _convolutions(each, each.w[-1] * each.w[-2])


def _convolutions(each: Geometry, outputs: int) -> tuple[Case, ...]:
    y = each.windows(each.w[:-2], outputs)
    return (
        Case((each.x, each.w), each.attrs),
        Case((each.w, y), {"sizes": each.x[1:], **each.attrs}),
        Case((each.x, y), {"sizes": each.w, **each.attrs}),
    )


def of_windows(each: Geometry) -> tuple[Case, ...]:
    """Return cases of pooling and its gradients."""
    y, attrs = each.windows(each.w, each.x[-1]), {"window": each.w, **each.attrs}
    return (
        Case((each.x,), attrs),
        Case((each.x, y, y), attrs),
        Case((each.x, y, each.x), attrs),
        Case((each.x,), attrs),
        Case((y,), {"sizes": each.x[1:-1], **attrs}),
    )


def _rows(
    names: str,
    references: tuple[Callable[..., Array], ...],
    cases: Callable[[Geometry], tuple[Case, ...]],
    geometries: dict[str, tuple[Geometry, ...]],
    options: tuple[dict[str, Any], ...] = ({}, {}, {}),
) -> dict[str, Row]:
    """Return the rows of ops, for each of which `cases` makes a case of a geometry."""
    columns = [zip(*map(cases, some), strict=True) for some in geometries.values()]
    return {
        name: Row(reference, small, large, empty, **more)
        for name, reference, more, small, large, empty in zip(
            names.split(), references, options, *columns, strict=True
        )
    }


def _deeper(geometries: dict[str, tuple[Geometry, ...]]) -> dict[str, tuple[Geometry, ...]]:
    """Return some of the geometries with three spatial axes."""
    return {size: tuple(each.deeper() for each in some[:2]) for size, some in geometries.items()}


def _not_of_places(direction: Array, number: int) -> Array:
    """Return a direction along which images and what is the largest of them stay as they are."""
    return direction * (number == 2)


_POOLING = (largest, gradient_of_largest, first_largest, mean, gradient_of_mean)
# Whole numbers, of which many are the largest of several windows.
_CHOSEN: dict[str, Any] = {"kinds": ("places", "places", "any"), "along": _not_of_places}
_POOLING_OPTIONS: tuple[dict[str, Any], ...] = ({"dtypes": NUMBERS}, _CHOSEN, _CHOSEN, {}, {})
_CONVOLUTION = (convolved, gradient_of_images, gradient_of_filters)

# The ops, in the order of the cases.
CONV_2D = "Conv2D Conv2DBackpropInput Conv2DBackpropFilter"
CONV_3D = "Conv3D Conv3DBackpropInputV2 Conv3DBackpropFilterV2"
DEPTHWISE = " ".join(
    f"DepthwiseConv2dNative{end}" for end in ("", "BackpropInput", "BackpropFilter")
)
POOL_2D = "MaxPool MaxPoolGrad MaxPoolGradGrad AvgPool AvgPoolGrad"
POOL_3D = "MaxPool3D MaxPool3DGrad MaxPool3DGradGrad AvgPool3D AvgPool3DGrad"

WINDOW_ROWS: dict[str, Row] = {
    **_rows(CONV_2D, _CONVOLUTION, of_filters, FILTERS),
    **_rows(CONV_3D, _CONVOLUTION, of_filters, _deeper(FILTERS)),
    **_rows(
        DEPTHWISE,
        (depthwise, depthwise_of_images, depthwise_of_filters),
        of_depthwise,
        DEPTHWISE_FILTERS,
    ),
    **_rows(
        POOL_2D,
        _POOLING,
        of_windows,
        WINDOWS,
        _POOLING_OPTIONS,
    ),
    **_rows(
        POOL_3D,
        _POOLING,
        of_windows,
        _deeper(WINDOWS),
        _POOLING_OPTIONS,
    ),
}
