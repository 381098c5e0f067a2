"""Which pixels are mixed where images become larger or smaller, and in which parts.

All of it is NumPy's, of the sizes alone; the numbers are TensorFlow's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Samples(NamedTuple):
    """What the results along an axis are sums of.

    Attributes:
        places: The places of pixels, shape (pixels of each sum, results).
        weights: What these are multiplied by, floats of this shape.
    """

    places: Array
    weights: Array


class _Kernel(NamedTuple):
    """A function of a distance, which is 0 from a radius on."""

    radius: float
    weights: Callable[[Array], Array]


def _triangle(x: Array) -> Array:
    return np.maximum(1.0 - x, 0.0)


def _keys(x: Array) -> Array:
    near, far = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell(x: Array) -> Array:
    near = ((7 / 6 * x - 2) * x) * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _lanczos(radius: int) -> _Kernel:
    def weights(x: Array) -> Array:
        return np.where(x > radius, 0, np.where(x > 1e-3, np.sinc(x) * np.sinc(x / radius), 1))

    return _Kernel(radius, weights)


# By TensorFlow's names of methods.
_KERNELS = {
    "bilinear": _Kernel(1, _triangle),
    "bicubic": _Kernel(2, _keys),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": _Kernel(1.5, lambda x: np.where(x >= 1.5, 0, np.exp(-2 * x * x))),
    "mitchellcubic": _Kernel(2, _mitchell),
}


def centres(size: int, wanted: int) -> NDArray[np.float32]:
    """Return where the centres of results are, from 0 to the size of what they are of.

    Args:
        size: The number of pixels.
        wanted: The number of results.
    """
    scale = np.float32(size) / np.float32(wanted)
    return (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale


def samples(method: str, antialias: bool, size: int, wanted: int) -> Samples:
    """Return what results are sums of.

    Args:
        method: TensorFlow's name of the way to mix.
        antialias: Whether more pixels are mixed where there are fewer results than pixels.
        size: The number of pixels.
        wanted: The number of results.
    """
    if method == "area":
        return _areas(size, wanted)
    kernel, at = _KERNELS[method], centres(size, wanted).astype(np.float64)
    if method == "bicubic" and not antialias:  # TensorFlow has a table of these distances.
        whole = np.floor(at - 0.5)
        at = whole + np.rint((at - 0.5 - whole) * 1024) / 1024 + 0.5
    stretch = max(size / wanted, 1.0) if antialias else 1.0
    reach = kernel.radius * stretch + 0.5
    first = np.clip(np.ceil(at - reach), 0, size - 1)
    last = np.clip(np.floor(at + reach - 1), 0, size - 1)
    places = first + np.arange(int(np.max(last - first)) + 1)[:, None]
    weights = kernel.weights(np.abs(places + 0.5 - at) / stretch) * (places <= last)
    return _of(places, weights / weights.sum(axis=0), size)


def _areas(size: int, wanted: int) -> Samples:
    """Return the parts of pixels that results cover."""
    scale = np.float32(size) / np.float32(wanted)
    edges = (np.arange(wanted + 1, dtype=np.float32) * scale).astype(np.float64)
    begin, end = edges[:-1], edges[1:]
    places = np.floor(begin) + np.arange(int(np.max(np.ceil(end) - np.floor(begin))))[:, None]
    covered = np.minimum(places + 1, end) - np.maximum(places, begin)
    return _of(places, np.maximum(covered, 0) / np.float64(scale), size)


def _of(places: Array, weights: Array, size: int) -> Samples:
    return Samples(np.minimum(places, size - 1).astype(np.int32), weights.astype(np.float32))
