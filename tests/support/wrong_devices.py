"""Simulated GPUs that compute wrong: what stands in for the lowering of nodes to calls."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.program.kernel_calls import Call
from mirrored.program.lowering import HostLowering


def wrong_lowering(
    device: str, shape: tuple[int, int], fails: Callable[[int], bool] = lambda _: True
) -> Callable[..., list[Call]]:
    """Return a `HostLowering._node` with which a device flips bits of some products.

    Args:
        device: Its short name.
        shape: The shape of their second matrix.
        fails: Which of their runs are wrong, by numbers from 1 on.
    """
    lower: Any = HostLowering._node
    runs = itertools.count(1)

    def flip(out: Any) -> None:
        if fails(next(runs)):
            out.view(np.uint32)[...] ^= 1 << 22

    def broken(lowering: Any, node: Any, backend: Any) -> list[Call]:
        calls: list[Call] = lower(lowering, node, backend)
        own = node.device.short_name == device and node.op.name == "MatMul"
        if own and node.inputs[1].spec.shape == shape:
            calls = [*calls, Call(flip, (lowering.arrays.of(node.output),))]
        return calls

    return broken
