"""Sums over a fixed number of replicas, whose order does not depend on the number of devices."""

from collections.abc import Sequence

from mirrored import _overrides, devices
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops import buckets
from mirrored.distribute.cross_device_ops.all_reduce import AllReduceCrossDeviceOps
from mirrored.distribute.cross_device_ops.collectives import of_sum, per_replica_copies
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.reduction_to_one_device import sum_on
from mirrored.ops.add_n import tree_sum
from mirrored.ops.tensor import Tensor


class TreeReduction(AllReduceCrossDeviceOps):
    """Sums over the tree of replicas; two partial sums meet on the device of the left one.

    So replicas of one device are added there, where the tree has them beside each other, and only
    partial sums are copied between devices. `MirroredStrategy(replicas=)` uses it.
    """

    __overrides__ = _overrides.ALL_REDUCES  # What the class itself defines is no override.
    algorithm = "tree"
    title = "Tree"

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        return self._reduced(reduce_op, values).copy_to(destination)

    def all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        options: CommunicationOptions,
        number: int,
        what: str,
    ) -> list[Tensor]:
        """Return the reduction of one tensor a replica, on the device of each."""
        where = [value._device for value in values]
        return per_replica_copies(self._reduced(reduce_op, values), where)

    def _reduced(self, reduce_op: ReduceOp, values: Sequence[Tensor]) -> Tensor:
        if len(values) == 1:
            return values[0]
        total = tree_sum(values, lambda left, right: sum_on([left, right], left._device))
        with devices.device(total._device):
            return of_sum(reduce_op, total, len(values))

    def _buckets(
        self, batch: Sequence[Sequence[Tensor]], options: CommunicationOptions
    ) -> list[list[int]]:
        memories = {value._device.backend.memory for values in batch for value in values}
        # In one memory nothing is copied, which buckets could do side by side.
        return buckets.alike(batch) if len(memories) == 1 else super()._buckets(batch, options)
