"""Packs: many tensors as a few flat vectors, so that an all-reduce is a few calls.

A pack holds elements of one dtype from one device, and may begin or end inside a tensor.
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


def pack_bounds(
    size: int, itemsize: int, num_packs: int, bytes_per_pack: int
) -> list[tuple[int, int]]:
    """Return where each pack of a vector begins and ends, in elements; no pack is needless.

    Args:
        size: The elements of the vector.
        itemsize: The bytes of one.
        num_packs: How many packs of equal size; the last takes the remainder as well.
        bytes_per_pack: How many bytes each but the last has; 0: what `num_packs` says.

    Example:
        >>> pack_bounds(10, 4, 3, 0)
        [(0, 3), (3, 6), (6, 10)]
        >>> pack_bounds(10, 4, 3, 16)
        [(0, 4), (4, 8), (8, 10)]
    """
    if bytes_per_pack:
        step = max(bytes_per_pack // itemsize, 1)
        starts = list(range(0, size, step)) or [0]
    else:
        step = size // num_packs
        starts = [i * step for i in range(num_packs)] if step else [0]
    return list(zip(starts, [*starts[1:], size], strict=True))
