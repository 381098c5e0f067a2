"""Sums over a fixed number of replicas of several workers: the tree is that of one worker.

Each worker sums the largest subtrees that consist of its replicas. The workers exchange these
partial sums as bytes, and each of them adds the rest.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import devices, ops
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.across_workers import AcrossWorkers, sum_over_workers
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps, of_sum
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.reduction_to_one_device import sum_on
from mirrored.distribute.cross_device_ops.sums_meanwhile import worker_op
from mirrored.ops import IndexedSlices
from mirrored.ops.add_n import join_subtrees, subtrees
from mirrored.ops.hooks import only
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.workers import Workers


class TreeAcrossWorkers(AcrossWorkers):
    """Sums over the tree of the replicas of all workers.

    Args:
        local: The collectives between the replicas of this worker.
        workers: The workers.
        counts: The number of replicas of each worker, by rank.
    """

    def __init__(self, local: CrossDeviceOps, workers: Workers, counts: Sequence[int]) -> None:
        super().__init__(local, workers, sum(counts))
        ends = [0, *accumulate(counts)]
        self._first = ends[workers.rank]
        of_workers = [
            subtrees(range(ends[-1]), range(first, last)) for first, last in pairwise(ends)
        ]
        self._own = of_workers[workers.rank]
        self._all = [part for parts in of_workers for part in parts]

    def sums_meanwhile(self, specs: Sequence[TensorSpec]) -> bool:
        """Return whether sums go on beside what else a step computes: they do not."""
        return False

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        total = self._total(list(values), options, "a value")
        with devices.device(destination):
            return of_sum(reduce_op, total.copy_to(destination), self._replicas)

    def _total(self, vectors: list[Tensor], options: CommunicationOptions, what: str) -> Tensor:
        shape, size = vectors[0].shape, vectors[0].size
        known = {
            range(number, number + 1): vector for number, vector in enumerate(vectors, self._first)
        }
        with only(), devices.device(vectors[0]._device):
            own = [ops.reshape(join_subtrees(part, known, _add), (size,)) for part in self._own]
            joined = own[0] if len(own) == 1 else ops.concat(own, axis=0)
            # A card has no kernel for it, so that the host sums.
            total = _TREE_SUM(joined, size=size, sum_now=self._sum_parts, what=what)
            return ops.reshape(total.copy_to(vectors[0]._device), shape)

    def _sum_parts(self, vector: NDArray[Any], out: NDArray[Any], what: str) -> None:
        """Exchange partial sums and add them, and note how long each worker took up to now."""
        self._workers.require(self._generation, what)
        self.times.stop()
        rows = np.concatenate(self._workers.gather_arrays(vector, what))
        parts = dict(zip(self._all, rows.reshape(len(self._all), out.size), strict=True))
        out[...] = join_subtrees(range(self._replicas), parts, np.add)
        self.times.go_on()

    def _own_slices(self, slices: Sequence[IndexedSlices]) -> IndexedSlices:
        """Return the rows of all replicas of this worker: they are added in replica order."""
        with devices.device("CPU:0"):
            values = ops.concat([part.values for part in slices], axis=0)
            indices = ops.concat([part.indices for part in slices], axis=0)
            return IndexedSlices(values, indices, slices[0].dense_shape)


def _add(left: Tensor, right: Tensor) -> Tensor:
    return sum_on([left, right], left._device)


# Its input is a worker's partial sums.
_TREE_SUM = worker_op(
    name="CollectiveReduceV2",
    infer=lambda x, *_, size, **__: TensorSpec((size,), x.dtype),
    may_alias=(),
    kernel=sum_over_workers,
)
