"""Fused kernels of elementwise ops: each thread computes all ops for its elements.

What passes from op to op stays in registers, so one reads and writes memory once.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.expressions import EXPRESSIONS
from mirrored.backends.cuda.fused_layout import Layout, layout
from mirrored.backends.cuda.fused_text import Writer
from mirrored.backends.cuda.kernels.kernel import DeviceKernel, Launcher
from mirrored.backends.cuda.source import Source
from mirrored.backends.stream_backend import FusedOp, Fusion

# What is looked for in the places of arrays, a power of two in elements: none needs more.
_ALIGNED = 16


class _Text(NamedTuple):
    """A fused kernel, how its elements are shared out, and the numbers of its index arithmetic."""

    source: Source
    layout: Layout
    numbers: tuple[int, ...]


@lru_cache(maxsize=4096)
def _text_of(fusion: Fusion, alignment: int) -> _Text:
    shared_out = layout(fusion, alignment)
    writer = Writer(fusion, shared_out)
    ops = ", ".join(op.name for op in fusion.ops)
    return _Text(Source(f"fused {ops}", writer.text()), shared_out, tuple(writer.numbers))


def fused_source(fusion: Fusion, alignment: int = _ALIGNED) -> Source:
    """Return the text of a fused kernel, which is called `fused`.

    Args:
        fusion: The kernel.
        alignment: A power of two of which the place of each of its arrays is a multiple, in
            elements.
    """
    return _text_of(fusion, alignment).source


def fused_kernel(fusion: Fusion) -> Callable[..., None]:
    """Return a fused kernel: kernel(xp, outputs, inputs, flag)."""
    size = math.prod(fusion.ops[0].shape)

    def run(xp: Launcher, outputs: tuple[Any, ...], inputs: tuple[Any, ...], flag: Any) -> None:
        if not size:
            return
        text = _text_of(fusion, _alignment((*inputs, *outputs)))
        number = np.uint32 if size < 1 << 31 else np.int64
        sizes = map(number, text.layout.numbers)
        numbers = map(number, text.numbers)
        args = (flag, *sizes, *inputs, *outputs, *numbers)
        xp.launch(text.source, "fused", text.layout.blocks, text.layout.threads, args)

    return run


def _alignment(arrays: tuple[Any, ...]) -> int:
    """Return the greatest power of two that the place of each array is a multiple of, or less."""
    places = [array.data.ptr // array.itemsize for array in arrays if array.size > 1]
    return math.gcd(_ALIGNED, *places)


def _one_op(name: str) -> DeviceKernel:
    """Return the kernel of an op: a fused one of that op alone."""

    def run(xp: Launcher, out: Any, *arrays: Any, **attrs: Any) -> None:
        inputs = tuple((array.shape, array.dtype) for array in arrays)
        op = FusedOp(name, tuple(range(len(arrays))), out.shape, out.dtype)
        fused_kernel(Fusion(inputs, (op,), (0,)))(xp, (out,), arrays, None)

    return DeviceKernel(run)


KERNELS: dict[str, DeviceKernel] = {name: _one_op(name) for name in EXPRESSIONS}
