"""What the replicas of a strategy do together: values are reduced, gathered, and given to all.

The strategy settles for all of it which collectives it uses, and what happens where NCCL fails.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explained
from mirrored.devices import Device
from mirrored.distribute import reduction
from mirrored.distribute.cross_device_ops import CommunicationOptions, CrossDeviceOps
from mirrored.distribute.cross_device_ops.base import joining_device
from mirrored.distribute.cross_device_ops.choice import choose_without_nccl
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.distribute.values import Mirrored, PerReplica, select
from mirrored.errors import CollectiveError, DeviceUnavailableError
from mirrored.ops.dispatch import adopt
from mirrored.ops.tensor import Tensor

ON_NCCL_FAILURE = ("raise", "fallback")


@explained
class Collectives:
    """How the replicas of a strategy reduce and gather values.

    Args:
        cross_device_ops: The collectives to use.
        options: The hints for those that are given none.
        on_nccl_failure: "raise" or "fallback"; see `MirroredStrategy`.
    """

    def __init__(
        self,
        cross_device_ops: CrossDeviceOps,
        options: CommunicationOptions | None = None,
        on_nccl_failure: str = "raise",
    ) -> None:
        self._cross_device_ops = cross_device_ops
        self._options = options
        self._on_nccl_failure = on_nccl_failure

    @property
    def devices(self) -> tuple[Device, ...]:
        """The logical device of each replica."""
        raise NotImplementedError

    def reduce_parts(self, op: ReduceOp, parts: list[Tensor]) -> Tensor:
        """Return the sum or mean of the replicas' tensors.

        Args:
            op: Sum or mean.
            parts: The tensors, by replica.
        """
        return self._cross_device_ops.reduce(op, parts, joining_device(parts), self._options)

    def batch_all_reduce(
        self, reduce_op: ReduceOp | str, values: Sequence[Any], options: Any = None
    ) -> list[Any]:
        """Reduce many per-replica values; each replica gets every result on its device.

        Args:
            reduce_op: Sum or mean.
            values: Per-replica tensors; a tensor that all replicas share counts once a replica.
            options: `CommunicationOptions`; None: those of the strategy.

        Raises:
            CollectiveError: The devices could not be connected, or a collective failed or took too
                long (CollectiveTimeoutError).
            DeviceUnavailableError: Something that it takes to connect the devices is missing.
        """
        # A tensor may come from elsewhere, such as a constant made outside the replicas.
        batch = [
            [select(i, value).copy_to(device) for i, device in enumerate(self.devices)]
            for value in values
        ]
        hints = self._options if options is None else options
        reduced = self._prepared().batch_all_reduce(reduce_op, batch, hints)
        return [Mirrored(parts) for parts in reduced]

    def gather_parts(self, parts: list[Tensor], axis: int) -> Tensor:
        """Return the replicas' tensors, one after the other along an axis.

        Args:
            parts: The tensors, by replica.
            axis: The axis.
        """
        return self._cross_device_ops.gather(parts, joining_device(parts), axis)

    def batch_all_gather(self, value: Any, axis: Any) -> tuple[Mirrored, PerReplica]:
        """Return the replicas' values joined, on each of them, and where each one's part begins.

        Args:
            value: Per-replica tensors.
            axis: The axis to join them along.

        Raises:
            ValueError: `axis` is not there, or is not the same on all replicas.
        """
        parts = [adopt(select(i, value), None) for i in range(len(self.devices))]
        reduction.check_axis(axis, parts)
        gathered = self.gather_parts(parts, axis)
        starts = list(itertools.accumulate((part.shape[axis] for part in parts), initial=0))
        copies = [gathered.copy_to(device) for device in self.devices]
        return Mirrored(copies), PerReplica(starts[:-1])

    def _prepared(self) -> CrossDeviceOps:
        """Return the collectives, once the devices are connected, where they have to be."""
        try:
            self._cross_device_ops.prepare(self.devices)
        except (CollectiveError, DeviceUnavailableError) as error:
            if self._on_nccl_failure == "raise":
                if "on_nccl_failure" not in str(error):
                    error.add_note('MirroredStrategy(on_nccl_failure="fallback") sums without it.')
                raise
            self._cross_device_ops = choose_without_nccl(self.devices, error)
        return self._cross_device_ops
