"""All-reduces by NCCL, NVIDIA's library for the links between its GPUs.

It sums between cards; what lies on one card is summed there before, and copied there afterwards.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter_ns
from typing import Any
from weakref import WeakSet

from mirrored import _overrides, devices
from mirrored._logging import logger
from mirrored.backends import set_deterministic
from mirrored.backends.communication.connection import Connection
from mirrored.devices import Device
from mirrored.devices.work_timing import Work, observers, tell
from mirrored.distribute.cross_device_ops.all_reduce import AllReduceCrossDeviceOps
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps, of_sum
from mirrored.distribute.cross_device_ops.connections import Rank, TestedPeers, connection, ranks
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.reduction_to_one_device import sum_on
from mirrored.ops.hooks import active_recorder
from mirrored.ops.spec import NUMBERS
from mirrored.ops.tensor import Tensor

# What traces and the placement log call one rank's part; a recorded one has this name too.
_NAME = "NcclAllReduce"


class NcclAllReduce(AllReduceCrossDeviceOps):
    """Sums between GPUs by NCCL, which has one rank on each card.

    Replicas on one card are summed there first, in replica order, and get copies of the sum: so
    virtual GPUs have NCCL too. The order of the sum between cards is NCCL's own. Sums over N
    replicas are within N times the machine epsilon of `ReductionToOneDevice`, relative to the sum
    of the values' magnitudes; those of integers are equal.

    The cards are connected when they are first needed, and known sums are tried before, in a
    process of their own (not with MIRRORED_NCCL_SELFTEST=0 in the environment). Every all-reduce
    has a deadline, `CommunicationOptions(timeout_seconds=)`, and raises CollectiveTimeoutError
    after it.

    Where all replicas are on one card there is nothing to send, and where one of them is no GPU, or
    a simulated one, there is no NCCL: values are then reduced as by `ReductionToOneDevice`, and a
    line of the log says so. A single `reduce` always is that of `ReductionToOneDevice`.

    Args:
        num_packs: How many buckets of about equal size the tensors of each dtype make, cut between
            tensors. 1: buckets of 25 MB, each of which is summed as soon as its gradients are
            there; 0: no packing.

    Raises:
        ValueError: `num_packs` is negative or not a whole number.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> strategy = mr.MirroredStrategy(cross_device_ops=mr.distribute.NcclAllReduce())
        >>> total = strategy.run(lambda: mr.distribute.get_replica_context().all_reduce("sum", 2.0))
        >>> [float(each) for each in strategy.experimental_local_results(total)]
        [4.0, 4.0]
    """

    __overrides__ = _overrides.ALL_REDUCES  # What the class itself defines is no override.
    algorithm = "nccl"
    title = "NCCL all-reduce"

    def __init__(self, num_packs: int = 1) -> None:
        """Check the number of packs; nothing is connected yet."""
        super().__init__(num_packs)
        self._told: set[tuple[str, ...]] = set()
        self._used: WeakSet[Connection] = WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_num_packs", "_lines", "_reduction")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._told, self._used = set(), WeakSet()

    def prepare(self, devices: Sequence[Device]) -> None:
        """Connect the devices, unless they are connected or need not be; see `CrossDeviceOps`."""
        between = self._connection(devices)
        if between is not None:
            between.open()

    def make_deterministic(self, devices: Sequence[Device]) -> None:
        """Let NCCL, where it sums between the devices, add in one order; see `CrossDeviceOps`."""
        if self._connection(devices) is not None:
            set_deterministic()

    def close(self) -> None:
        """Disconnect the devices, once their sums are done; another all-reduce connects them.

        What else uses the same devices connects them again too.
        """
        for communicator in list(self._used):
            communicator.close()

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`; what NCCL cannot do is left to the reference."""
        by_nccl = [self._sums(values) for values in batch]
        if all(by_nccl):
            return super().batch_all_reduce_implementation(reduce_op, batch, options)
        reduced = iter(
            super().batch_all_reduce_implementation(
                reduce_op, [v for v, here in zip(batch, by_nccl, strict=True) if here], options
            )
        )
        rest = iter(
            self._rest.batch_all_reduce_implementation(
                reduce_op, [v for v, here in zip(batch, by_nccl, strict=True) if not here], options
            )
        )
        return [next(reduced if here else rest) for here in by_nccl]

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
        parts = _ranks(where)
        sums = [_sum_on_card([values[i] for i in rank.replicas]) for rank in parts]
        between = self._between([where[rank.leader] for rank in parts])
        recorder = active_recorder()
        all_reduce = _all_reduce if recorder is None else recorder.all_reduce
        results = list(values)
        totals = all_reduce(sums, between, what=what, timeout=options.timeout)
        for rank, total in zip(parts, totals, strict=True):
            with devices.device(total._device):
                reduced = of_sum(reduce_op, total, self._replicas_of(values))
            for i in rank.replicas:
                results[i] = reduced.copy_to(where[i])
        return results

    def _sums(self, values: Sequence[Tensor]) -> bool:
        """Whether NCCL sums these: numbers, at least one, and on more than one card."""
        if values[0].dtype not in NUMBERS or not values[0].size:
            return False
        return self._connection([value._device for value in values]) is not None

    def _connection(self, where: Sequence[Device]) -> Connection | None:
        """Return what connects devices; None: nothing has to, or can."""
        for device in where:
            if device.why_no_card is not None:
                self._tell(where, device, f"which is {device.why_no_card}")
                return None
        leaders = [where[rank.leader] for rank in _ranks(where)]
        if len(leaders) == 1 and self._peers is None:
            return None
        communicator = self._between(leaders)
        self._used.add(communicator)
        return communicator

    @property
    def _peers(self) -> TestedPeers | None:
        """Other processes, with whose devices these are connected; None: there are none."""
        return None

    @property
    def _rest(self) -> CrossDeviceOps:
        """What reduces the values that NCCL does not."""
        return self._reduction

    def _between(self, leaders: Sequence[Device]) -> Connection:
        """Return what connects the devices of ranks."""
        return connection(leaders, self._peers)

    def _replicas_of(self, values: Sequence[Tensor]) -> int:
        """Return how many values are reduced where these are."""
        return len(values)

    def _tell(self, where: Sequence[Device], device: Device, reason: str) -> None:
        """Log, once for each set of devices, why NCCL does not sum between them."""
        names = tuple(member.full_name for member in where)
        if names in self._told:
            return
        self._told.add(names)
        logger.debug(
            "NCCL does not connect %s, %s: values are reduced by ReductionToOneDevice.",
            device.full_name,
            reason,
        )


def _ranks(where: Sequence[Device]) -> list[Rank]:
    return ranks([device.backend.memory for device in where])


def _sum_on_card(tensors: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors of one card, in their order, on the device of the first."""
    return tensors[0] if len(tensors) == 1 else sum_on(tensors, tensors[0]._device)


def _all_reduce(
    sums: Sequence[Tensor], between: Connection, *, what: str, timeout: float
) -> list[Tensor]:
    """Return the sum of one tensor a rank, on each; the host waits, and raises what went wrong."""
    storages = [value._device.allocate(value.shape, value.dtype) for value in sums]
    sends = [value._array for value in sums]
    begun = perf_counter_ns() if observers else 0
    peers = between.peers
    with nullcontext() if peers is None else peers.together():
        # What computes the tensors comes before, and so does what used the results' memory last.
        for stream, rank in zip(between.streams, between.ranks, strict=True):
            stream.wait(rank.record())
        events = between.all_reduce(
            sends, [output.array for output in storages], what=what, timeout=timeout
        )
        # What uses the memory next comes after, also where the host's wait is interrupted.
        for event, rank in zip(events, between.ranks, strict=True):
            rank.wait(event)
        between.finish()
    results = []
    for tensor, storage in zip(sums, storages, strict=True):
        device, size = tensor._device, storage.nbytes
        devices.log_placement(_NAME, device)
        if begun:
            tell(Work("AllReduce", "collective", _NAME, device.short_name, size, size), begun)
        results.append(Tensor(storage.array, storage, device, tensor.spec))
    return results
