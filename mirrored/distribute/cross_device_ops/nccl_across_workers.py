"""Sums over the cards of all workers by NCCL; what it does not sum goes over the workers by MPI.

Gradients never come to the host this way, and recorded steps need not wait for it.
"""

import math
from collections.abc import Sequence

from mirrored import devices, ops
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.across_workers import AcrossWorkers
from mirrored.distribute.cross_device_ops.buckets import described
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps
from mirrored.distribute.cross_device_ops.connections import WorkerCards
from mirrored.distribute.cross_device_ops.nccl_all_reduce import NcclAllReduce
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.spec import NUMBERS, TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.workers import Workers


class NcclAcrossWorkers(AcrossWorkers):
    """Lets NCCL sum over the cards of all workers, and MPI over the workers what that does not.

    All-reduces of numbers are NCCL's, and all that is recorded, since what is recorded for a card
    does not wait for the host. Single values, as those of metrics, are small: where Python runs
    they go over the host.

    Args:
        local: The collectives between the replicas of this worker.
        workers: The workers.
        replicas: How many replicas all of them have.
        cards: How the cards are connected.
        where: The devices of this worker's replicas.
    """

    def __init__(
        self,
        local: CrossDeviceOps,
        workers: Workers,
        replicas: int,
        cards: WorkerCards,
        where: Sequence[Device],
    ) -> None:
        super().__init__(local, workers, replicas)
        self._nccl = _BetweenCards(cards, replicas, AcrossWorkers(local, workers, replicas))
        self._where = tuple(where)
        seconds = workers.deadline
        self._hints = CommunicationOptions(timeout_seconds=0 if math.isinf(seconds) else seconds)

    def prepare(self, devices: Sequence[Device]) -> None:
        """Connect the cards of all workers, unless they are connected, or their sums do so."""
        if self._workers.on_failure == "raise":
            self._nccl.prepare(devices)

    def close(self) -> None:
        """Disconnect the cards of all workers, which all of them do."""
        self._nccl.close()
        super().close()

    def over_workers(self, tensor: Tensor, what: str | None = None) -> Tensor:
        """Return the sum of one tensor a worker, all of one shape and dtype.

        Args:
            tensor: This worker's.
            what: What errors call the sum.
        """
        if active_recorder() is None or not tensor.size or tensor.dtype not in NUMBERS:
            return super().over_workers(tensor, what)
        first, *others = self._where
        with only():
            values = [tensor.copy_to(first)]
            for device in others:  # Which add nothing.
                with devices.device(device):
                    values.append(ops.zeros(tensor.shape, tensor.dtype))
            text = described(0, 1, tensor.spec) if what is None else what
            reduced = self._nccl.all_reduce_implementation(
                ReduceOp.SUM, values, self._hints, 0, text
            )
            return reduced[0].copy_to(tensor._device)

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        if active_recorder() is None or not self._sums(values):
            return super().reduce_implementation(reduce_op, values, destination, options)
        label = described(0, 1, values[0].spec)
        reduced = self._nccl.all_reduce_implementation(reduce_op, values, options, 0, label)
        return reduced[0].copy_to(destination)

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`: by NCCL, but for what it does not sum."""
        return self._nccl.batch_all_reduce_implementation(reduce_op, batch, options)

    def sums_meanwhile(self, specs: Sequence[TensorSpec]) -> bool:
        """Return False: NCCL's buckets begin as they are ready, in whatever order they are."""
        return False

    def _sums(self, values: Sequence[Tensor]) -> bool:
        """Whether NCCL sums these: numbers, one on each of this worker's devices."""
        return tuple(value._device for value in values) == self._where and self._nccl.sums(values)


class _BetweenCards(NcclAllReduce):
    """NCCL between the cards of all workers.

    Args:
        cards: How they are connected.
        replicas: How many replicas all workers have.
        rest: What reduces the values that NCCL does not.
    """

    def __init__(self, cards: WorkerCards, replicas: int, rest: CrossDeviceOps) -> None:
        super().__init__()
        self._cards = cards
        self._replicas = replicas
        self._others = rest
        self._lines = rest._lines

    def sums(self, values: Sequence[Tensor]) -> bool:
        """Whether NCCL sums these."""
        return self._sums(values)

    @property
    def _rest(self) -> CrossDeviceOps:
        return self._others

    @property
    def _peers(self) -> WorkerCards:
        return self._cards

    def _replicas_of(self, values: Sequence[Tensor]) -> int:
        return self._replicas
