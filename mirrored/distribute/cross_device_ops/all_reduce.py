"""What the algorithms share that reduce on every device at once: packing, and its line in the log.

An algorithm says only how one tensor a replica becomes its reduction on all of them.
"""

from collections.abc import Sequence
from typing import ClassVar

from mirrored import devices
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.base import CrossDeviceOps
from mirrored.distribute.cross_device_ops.log import FirstLines
from mirrored.distribute.cross_device_ops.options import CommunicationOptions
from mirrored.distribute.cross_device_ops.packing import alike, flatten, pack_bounds, unflatten
from mirrored.distribute.cross_device_ops.reduction import ReductionToOneDevice
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.ops.tensor import Tensor


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """Packs the tensors of a batch, and has each pack reduced; a lone `reduce` is the reference's.

    Args:
        num_packs: How many packs the tensors of each dtype are cut into; 0: no packing.

    Raises:
        ValueError: `num_packs` is negative or not a whole number.
    """

    algorithm: ClassVar[str]  # What the log calls it.
    title: ClassVar[str]  # What errors call it.

    def __init__(self, num_packs: int = 1) -> None:
        """Check the number of packs."""
        count = as_integer(num_packs)
        if count is None or count < 0:
            raise ValueError(f"{self.title} requires num_packs >= 0, but {num_packs} is specified")
        self._num_packs = count
        self._reduction = ReductionToOneDevice()
        self._lines = FirstLines()

    def all_reduce_implementation(
        self, reduce_op: ReduceOp, values: Sequence[Tensor], number: int
    ) -> list[Tensor]:
        """Return the reduction of one tensor a replica, on the device of each.

        Args:
            reduce_op: Sum or mean.
            values: The replicas' tensors, all of one shape and dtype.
            number: Which pack, or which value where there is no packing, from 0.
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
    ) -> list[list[Tensor]]:
        """Compute `batch_all_reduce`; its arguments are checked."""
        if batch and self._lines.take():
            logger.info(
                "batch_all_reduce: %d all-reduces with algorithm = %s, num_packs = %d",
                len(batch),
                self.algorithm,
                self._num_packs,
            )
        if not self._num_packs and not options.bytes_per_pack:
            return [
                self.all_reduce_implementation(reduce_op, values, number)
                for number, values in enumerate(batch)
            ]
        results: list[list[Tensor]] = [[] for _ in batch]
        for members in alike(batch):
            replicas = list(zip(*(batch[i] for i in members), strict=True))
            flats = [flatten(tensors) for tensors in replicas]
            reduced = self._all_reduce_vectors(reduce_op, flats, options)
            for flat, tensors in zip(reduced, replicas, strict=True):
                for i, part in zip(members, unflatten(flat, tensors), strict=True):
                    results[i].append(part)
        return results

    def _all_reduce_vectors(
        self, reduce_op: ReduceOp, flats: Sequence[Tensor], options: CommunicationOptions
    ) -> list[Tensor]:
        """Return the reduction of one vector a replica, which is cut into packs, on each device."""
        size, itemsize = flats[0].size, flats[0].dtype.itemsize
        bounds = pack_bounds(size, itemsize, self._num_packs, options.bytes_per_pack)
        if len(bounds) == 1:
            return self.all_reduce_implementation(reduce_op, flats, 0)
        packs = []
        for number, (start, stop) in enumerate(bounds):
            parts = []
            for flat in flats:
                with devices.device(flat._device):
                    parts.append(flat[start:stop])
            packs.append(self.all_reduce_implementation(reduce_op, parts, number))
        return [flatten(parts) for parts in zip(*packs, strict=True)]
