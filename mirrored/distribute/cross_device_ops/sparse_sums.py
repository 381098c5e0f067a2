"""Sums of sparse values: of several replicas' rows each row once, and nothing of the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirrored import devices, ops
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.errors import InvalidArgumentError
from mirrored.ops import IndexedSlices


def check_slices(slices: Sequence[Any]) -> None:
    """Raise InvalidArgumentError where replicas' rows are not those of one tensor."""
    first = slices[0]
    for i, part in enumerate(slices):
        if not isinstance(part, IndexedSlices) or _kind(part) != _kind(first):
            raise InvalidArgumentError(
                "Replicas can reduce only IndexedSlices of the same dtype, row shape and dense "
                f"shape. Received: {first!r} from replica 0 and {part!r} from replica {i}."
            )


def reduce_slices(
    reduce_op: ReduceOp, slices: Sequence[IndexedSlices], destination: Device
) -> IndexedSlices:
    """Return the reduction of the replicas' rows: each index once, in rising order."""
    with devices.device("CPU:0"):
        values = ops.concat([part.values for part in slices], axis=0)
        indices = ops.concat([part.indices for part in slices], axis=0)
        rows, places = np.unique(np.asarray(indices.numpy()), return_inverse=True)
        sums = ops.unsorted_segment_sum(values, places, len(rows))
        if reduce_op is ReduceOp.MEAN and len(slices) > 1:
            sums = sums / len(slices)
        total = IndexedSlices(sums, rows, slices[0].dense_shape)
    return total.copy_to(destination)


def _kind(slices: IndexedSlices) -> tuple[Any, ...]:
    return slices.dtype, slices.indices.dtype, slices.values.shape[1:], slices.dense_shape
