"""The second level of collectives: what the replicas of each worker made is summed over workers.

The sums are in the order of the ranks, and so have the same bits on every worker and in every run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import devices
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops import sums_meanwhile
from mirrored.distribute.cross_device_ops.buckets import (
    alike,
    described,
    packed,
    reduced_as_vectors,
    taken_apart,
)
from mirrored.distribute.cross_device_ops.collectives import (
    CrossDeviceOps,
    of_sum,
    per_replica_copies,
    reduce_slices,
)
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.worker_times import WorkerTimes
from mirrored.ops import IndexedSlices
from mirrored.ops.hooks import only
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.workers import Workers


class AcrossWorkers(CrossDeviceOps):
    """Reduces among the replicas of each worker, and then over the workers.

    Args:
        local: The collectives between the replicas of this worker.
        workers: The workers.
        replicas: How many replicas all of them have.

    Attributes:
        times: How long each worker takes between two sums.
    """

    def __init__(self, local: CrossDeviceOps, workers: Workers, replicas: int) -> None:
        self._local = local
        self._lines = local._lines
        self._workers = workers
        self._replicas = replicas
        self._generation = workers.generation
        self.times = WorkerTimes(workers)

    def check_devices(self, devices: Sequence[Device]) -> None:
        """Raise InvalidArgumentError where this worker's devices will not do."""
        self._local.check_devices(devices)

    def prepare(self, devices: Sequence[Device]) -> None:
        """Connect this worker's devices."""
        self._local.prepare(devices)

    def close(self) -> None:
        """Disconnect this worker's devices; the workers stay connected."""
        self._local.close()

    def over_workers(self, tensor: Tensor, what: str | None = None) -> Tensor:
        """Return the sum of one tensor a worker, all of one shape and dtype.

        Args:
            tensor: This worker's.
            what: What errors call the sum.
        """
        text = described(0, 1, tensor.spec) if what is None else what
        with only(), devices.device(tensor._device):
            # A card has no kernel for it, so that the host sums.
            return _SUM(tensor, sum_now=self._sum_now, what=text).copy_to(tensor._device)

    def _sum_now(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        """Sum over the workers, and note how long each of them took up to now."""
        self._workers.require(self._generation, what)
        self.times.stop()
        self._workers.sum_in_order(vector, out, what)
        self.times.go_on()

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        total = self._local.reduce_implementation(ReduceOp.SUM, values, destination, options)
        total = self.over_workers(total)
        with devices.device(destination):
            return of_sum(reduce_op, total, self._replicas)

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`: the values of one dtype are one vector on the way.

        Or they are several, which go beside what else a step computes, where that pays.
        """
        groups = alike(batch)
        if self.sums_meanwhile([values[0].spec for values in batch]):
            groups = sums_meanwhile.cut(batch, groups, options)
            sums = sums_meanwhile.SumsMeanwhile(self._workers, self.times)
            buckets = [packed([batch[i] for i in members]) for members in groups]
            begun = []  # All, in order, before the first one is waited for.
            for number, vectors in enumerate(buckets):
                first = self._local_sum(vectors, options)
                begun.append(sums.begin(first, described(number, len(groups), first.spec)))
            totals = [sums.end(total) for total in begun]
            results = [
                self._on_each(reduce_op, total, vectors)
                for total, vectors in zip(totals, buckets, strict=True)
            ]
            return taken_apart(batch, groups, results)

        def reduced(number: int, vectors: list[Tensor]) -> list[Tensor]:
            what = described(number, len(groups), vectors[0].spec)
            return self._on_each(reduce_op, self._total(vectors, options, what), vectors)

        return reduced_as_vectors(batch, groups, reduced)

    def sums_meanwhile(self, specs: Sequence[TensorSpec]) -> bool:
        """Return whether sums go on beside what else a step computes, in the order of the batch.

        Args:
            specs: What is summed.
        """
        return sums_meanwhile.pays(self._workers, specs)

    def _total(self, vectors: list[Tensor], options: CommunicationOptions, what: str) -> Tensor:
        """Return the sum over the replicas of all workers."""
        return self.over_workers(self._local_sum(vectors, options), what)

    def _local_sum(self, vectors: list[Tensor], options: CommunicationOptions) -> Tensor:
        """Return the sum over this worker's replicas."""
        return self._local.batch_all_reduce_implementation(ReduceOp.SUM, [vectors], options)[0][0]

    def _on_each(
        self, reduce_op: ReduceOp, total: Tensor, vectors: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the reduction on the device of each replica, given the sum over the workers."""
        with devices.device(total._device):
            result = of_sum(reduce_op, total, self._replicas)
        return per_replica_copies(result, [vector._device for vector in vectors])

    def gather_implementation(
        self, values: Sequence[Tensor], destination: Device, axis: int
    ) -> Tensor:
        """Join this worker's values; the strategy knows where the others' are."""
        return self._local.gather_implementation(values, destination, axis)

    def reduce_slices_implementation(
        self, reduce_op: ReduceOp, slices: Sequence[IndexedSlices], destination: Device
    ) -> IndexedSlices:
        """Compute `reduce` of indexed slices: of the rows of all workers' replicas."""
        own = self._own_slices(slices)
        label = "rows of indexed slices"
        self._workers.require(self._generation, label)
        rows = self._workers.gather_arrays(np.asarray(own.indices.numpy()), label)
        values = self._workers.gather_arrays(np.asarray(own.values.numpy()), label)
        parts = [IndexedSlices(*pair, own.dense_shape) for pair in zip(values, rows, strict=True)]
        total = reduce_slices(ReduceOp.SUM, parts, destination)
        if reduce_op is ReduceOp.SUM:
            return total
        with devices.device(destination):
            return IndexedSlices(total.values / self._replicas, total.indices, total.dense_shape)

    def _own_slices(self, slices: Sequence[IndexedSlices]) -> IndexedSlices:
        """Return the rows that this worker adds to those of the others."""
        return reduce_slices(ReduceOp.SUM, slices, devices.get_device("CPU:0"))


def sum_over_workers(
    xp: Any, out: Any, x: Any, *_: Any, sum_now: Callable[..., None], what: str, **__: Any
) -> None:
    """Sum over the workers; the sums before this one are inputs that are not read."""
    sum_now(x.reshape(-1), out.reshape(-1), what)


_SUM = sums_meanwhile.worker_op(name="CollectiveReduceV2", kernel=sum_over_workers)
