"""Packs: many tensors as a few flat vectors, so that an all-reduce is a few calls.

A pack holds tensors of one dtype from one device.
"""

from collections.abc import Sequence
from typing import Any

from mirrored import devices, ops
from mirrored.ops.tensor import Tensor


def alike(batch: Sequence[Sequence[Tensor]]) -> list[list[int]]:
    """Return the positions of the values that fit one vector: one dtype, the same devices.

    Args:
        batch: For each value its tensors, by replica.
    """
    groups: dict[Any, list[int]] = {}
    for i, values in enumerate(batch):
        key = (values[0].dtype, *(value._device for value in values))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of tensors of one device and dtype as one vector there."""
    with devices.device(tensors[0]._device):
        return ops.concat([ops.reshape(each, (each.size,)) for each in tensors], axis=0)


def unflatten(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return a vector cut into tensors of the shapes of `like`, on the vector's device."""
    parts, start = [], 0
    with devices.device(flat._device):
        for each in like:
            stop = start + each.size
            parts.append(ops.reshape(flat[start:stop], each.shape))
            start = stop
    return parts
