"""Buckets: which tensors are summed as one vector, so that sums are few and begin early.

A bucket can be summed while the gradients of the next one are still being computed.
"""

from collections.abc import Sequence

from mirrored.backends import MEGABYTE
from mirrored.ops.spec import TensorSpec

# PyTorch's default (`bucket_cap_mb` of DistributedDataParallel). It was never measured here on
# several GPUs.
BUCKET_BYTES = 25 * MEGABYTE


def bucket_bytes(total: int, num_packs: int, bytes_per_pack: int) -> int:
    """Return how many bytes a bucket has to hold before the next one begins.

    Args:
        total: The bytes of all tensors.
        num_packs: How many buckets of about equal size; 1: as many as `BUCKET_BYTES` makes, 0: one
            a tensor.
        bytes_per_pack: The answer, where it is not 0.

    Example:
        >>> [bucket_bytes(100, num_packs, 0) for num_packs in (0, 1, 3)]
        [0, 26214400, 34]
    """
    if bytes_per_pack:
        return bytes_per_pack
    if num_packs > 1:
        return -(-total // num_packs)
    return BUCKET_BYTES if num_packs else 0


def cut(sizes: Sequence[int], least: int) -> list[range]:
    """Return the buckets, each as the places of its tensors, which stay in order and whole.

    Args:
        sizes: The bytes of each tensor.
        least: How many bytes close a bucket; the last may have fewer.

    Example:
        >>> cut([4, 4, 9, 1, 2], 8)
        [range(0, 2), range(2, 3), range(3, 5)]
        >>> cut([4, 4, 9], 0)
        [range(0, 1), range(1, 2), range(2, 3)]
    """
    buckets, start, held = [], 0, 0
    for place, size in enumerate(sizes):
        held += size
        if held >= least:
            buckets.append(range(start, place + 1))
            start, held = place + 1, 0
    if start < len(sizes):
        buckets.append(range(start, len(sizes)))
    return buckets


def nbytes(spec: TensorSpec) -> int:
    """Return the bytes of a tensor.

    Args:
        spec: Its shape and dtype.
    """
    count: int = spec.dtype.itemsize
    for size in spec.shape:
        count *= size
    return count


def described(number: int, count: int, spec: TensorSpec) -> str:
    """Return what errors call the all-reduce of a bucket.

    Args:
        number: Which bucket it is, from 0.
        count: How many there are.
        spec: The shape and dtype of what is summed.

    Example:
        >>> import numpy as np
        >>> described(1, 5, TensorSpec((3 << 20,), np.dtype(np.float32)))
        'bucket 2 of 5 (12.0 MB of float32)'
    """
    size = nbytes(spec)
    text = f"{size / MEGABYTE:.1f} MB" if size >= MEGABYTE else f"{size} bytes"
    return f"bucket {number + 1} of {count} ({text} of {spec.dtype.name})"
