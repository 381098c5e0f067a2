"""An all-reduce in two steps: devices reduce in two groups, then the groups exchange their sums.

On a machine whose devices are linked closely in two halves, only one sum crosses between them.
"""

from collections.abc import Sequence

from mirrored import _overrides, devices, ops
from mirrored.distribute.cross_device_ops.all_reduce import AllReduceCrossDeviceOps
from mirrored.distribute.cross_device_ops.collectives import of_sum
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.ops.tensor import Tensor


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """Sums within two halves of the devices, then adds the two sums and copies back the same way.

    The first half, which has one device more where their number is odd, is summed in replica
    order, and so is the second; then the second sum is added to the first. Up to three replicas
    this is the order of `ReductionToOneDevice`, and the results have the same bits; from four on,
    sums over N replicas are within N times the machine epsilon of it, relative to the sum of the
    values' magnitudes. A mean divides that sum once.
    Tensors are packed into buckets, which take turns in which devices add. A single `reduce` is
    that of `ReductionToOneDevice`.

    Args:
        num_packs: How many buckets of about equal size the tensors of each dtype make, cut between
            tensors. 1: buckets of 25 MB; 0: no packing.

    Raises:
        ValueError: `num_packs` is negative or not a whole number.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(4)
        >>> strategy = mr.MirroredStrategy(
        ...     cross_device_ops=mr.distribute.HierarchicalCopyAllReduce(num_packs=2)
        ... )
        >>> strategy.num_replicas_in_sync
        4
    """

    __overrides__ = _overrides.ALL_REDUCES  # What the class itself defines is no override.
    algorithm = "hierarchical_copy"
    title = "HierarchicalCopy"

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
        count, half = len(values), -(-len(values) // 2)
        if count == 1:
            return self.broadcast_implementation(values[0], where)
        groups = [range(half), range(half, count)]
        # Buckets are added on different devices, so that no device does the work of all.
        leaders = [where[group[number % len(group)]] for group in groups]
        sums = []
        for group, leader in zip(groups, leaders, strict=True):
            with devices.device(leader):
                sums.append(ops.add_n([values[i] for i in group]))
        with devices.device(leaders[number % count >= half]):
            total = of_sum(reduce_op, ops.add_n(sums), count)
        results: list[Tensor] = []
        at_leaders = self.broadcast_implementation(total, leaders)
        for group, copy in zip(groups, at_leaders, strict=True):
            results += self.broadcast_implementation(copy, [where[i] for i in group])
        return results
