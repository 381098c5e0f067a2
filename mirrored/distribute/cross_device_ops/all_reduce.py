"""What the algorithms share that reduce on every device at once: buckets, and a line in the log.

An algorithm says only how one tensor a replica becomes its reduction on all of them.
"""

from collections.abc import Sequence
from typing import ClassVar

from mirrored import _overrides
from mirrored._numbers import as_integer
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops import buckets
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.reduction_to_one_device import ReductionToOneDevice
from mirrored.ops.tensor import Tensor


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """Has the tensors of a batch reduced in buckets; a lone `reduce` is the reference's.

    Args:
        num_packs: How many buckets the tensors of each dtype make; 0: one a tensor, 1: as many as
            `buckets.BUCKET_BYTES` makes.

    Raises:
        ValueError: `num_packs` is negative or not a whole number.
    """

    __overrides__ = _overrides.ALL_REDUCES
    algorithm: ClassVar[str]  # What the log calls it.
    title: ClassVar[str]  # What errors call it.

    def __init__(self, num_packs: int = 1) -> None:
        count = as_integer(num_packs)
        if count is None or count < 0:
            raise ValueError(f"{self.title} requires num_packs >= 0, but {num_packs} is specified")
        self._num_packs = count
        self._reduction = ReductionToOneDevice()
        self._reduction._lines = self._lines  # Together they log one line at INFO.

    def all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        options: CommunicationOptions,
        number: int,
        what: str,
    ) -> list[Tensor]:
        """Return the reduction of one tensor a replica, on the device of each.

        Args:
            reduce_op: Sum or mean.
            values: The replicas' tensors, all of one shape and dtype.
            options: Hints for this call.
            number: Which bucket it is, from 0.
            what: What errors call it.
        """
        raise self._has_no("all_reduce_implementation")

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`, whose result only one device needs, as the reference does."""
        return self._reduction.reduce_implementation(reduce_op, values, destination, options)

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`; its arguments are checked."""
        if batch:
            self._lines.log(
                "batch_all_reduce: %d all-reduces with algorithm = %s, num_packs = %d",
                len(batch),
                self.algorithm,
                self._num_packs,
            )
        groups = self._buckets(batch, options)

        def reduced(number: int, values: list[Tensor]) -> list[Tensor]:
            label = buckets.described(number, len(groups), values[0].spec)
            return self.all_reduce_implementation(reduce_op, values, options, number, label)

        return buckets.reduced_as_vectors(batch, groups, reduced)

    def _buckets(
        self, batch: Sequence[Sequence[Tensor]], options: CommunicationOptions
    ) -> list[list[int]]:
        """Return the positions of the values that are reduced together."""
        groups = []
        for members in buckets.alike(batch):
            sizes = [buckets.nbytes(batch[i][0].spec) for i in members]
            least = buckets.bucket_bytes(sum(sizes), self._num_packs, options.bytes_per_pack)
            for places in buckets.bucket_ranges(sizes, least):
                groups.append([members[place] for place in places])
        return groups
