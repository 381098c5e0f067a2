"""Kernels that fill an array with a value.

So one text serves all values of a dtype.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels import teams
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher, launch_for_each
from mirrored.backends.cuda.source import Source, source

_TEXT = """
extern "C" __global__ void fill(T *out, i64 n, T_C value) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { store(out[i], value); }
}
"""


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    dtypes = [
        *teams.float_dtypes(),
        *(np.dtype(name) for name in (*teams.INTEGERS, "bool")),
    ]
    yield from map(_source, dtypes)


def _source(dtype: np.dtype[Any]) -> Source:
    return source("fill", _TEXT, T=dtype)


def fill(xp: Launcher, out: Any, value: Any) -> None:
    """Set every element of an array to a number that its dtype can hold."""
    if not out.size:
        return
    # Kernels compute with floats of 16 bits in single precision, and take such numbers.
    kind = np.dtype(np.float32) if out.dtype.name in teams.NARROW else out.dtype
    number = np.asarray(value).astype(kind)[()]
    launch_for_each(xp, _source(out.dtype), "fill", out.size, (out, np.int64(out.size), number))


def _fill(xp: Launcher, out: Any, *, shape: Any, value: Any, dtype: Any) -> None:
    fill(xp, out, value)


def _zeros(xp: Launcher, out: Any, *_: Any, **attrs: Any) -> None:
    xp.clear(out)


def _ones(xp: Launcher, out: Any, *_: Any, **attrs: Any) -> None:
    fill(xp, out, 1)


KERNELS: dict[str, DeviceKernel] = {
    "Fill": DeviceKernel(_fill),
    "ZerosLike": DeviceKernel(_zeros),
    "OnesLike": DeviceKernel(_ones),
}
