"""The replicas of a strategy, and what they do together: reduce, gather, and give to all.

The strategy settles for all of it which collectives it uses, and what happens where NCCL fails.
"""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest, devices, ops
from mirrored._arguments import explained
from mirrored.devices import Device
from mirrored.distribute.context import check_cross_replica, enter
from mirrored.distribute.cross_device_ops import CommunicationOptions, CrossDeviceOps
from mirrored.distribute.cross_device_ops.buckets import by_replica
from mirrored.distribute.cross_device_ops.choice import choose_without_nccl
from mirrored.distribute.cross_device_ops.collectives import (
    checked_axis,
    joining_device,
    per_replica_copies,
)
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.distributed_variables import DistributedVariable, copy_of
from mirrored.distribute.global_batch import assumed_replicas
from mirrored.distribute.per_replica import (
    DistributedValues,
    Mirrored,
    PerReplica,
    check_parts,
    select,
    select_leaf,
)
from mirrored.errors import CollectiveError, DeviceUnavailableError
from mirrored.ops.conversion import adopt
from mirrored.ops.tensor import Operators, Tensor
from mirrored.program import Graph
from mirrored.variables import Variable
from mirrored.variables.flat import packing_order

ON_NCCL_FAILURE = ("raise", "fallback")

# For type checkers: what is one value of all replicas.
_OneValue = DistributedValues | Operators | np.ndarray[Any, Any] | float


@explained
class StrategyBase:
    """The devices of a strategy's replicas, and how values are reduced and gathered over them.

    Args:
        cross_device_ops: The collectives to use.
        options: The hints for those that are given none.
        on_nccl_failure: "raise" or "fallback"; see `MirroredStrategy`.

    Attributes:
        first_replica: The number of the first replica that this process runs.
        lanes: For each replica the thread or stream of a recorded step; empty: one per replica.
        generation: How often replicas were shared out again, since workers had died.
    """

    first_replica: int = 0
    lanes: Sequence[int] = ()
    generation: int = 0
    _deterministic: bool = False
    _how_without_nccl: ClassVar[str] = (
        'MirroredStrategy(on_nccl_failure="fallback") sums without NCCL.'
    )

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

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas gradients are summed over."""
        return assumed_replicas() or 1

    @property
    def local_replicas(self) -> int:
        """How many of them this process runs: those of `devices`."""
        return self.num_replicas_in_sync

    @property
    def variable_devices(self) -> tuple[Device, ...]:
        """The devices of the copies of variables."""
        return self.devices

    @property
    def copy_numbers(self) -> Sequence[int]:
        """For each replica of this process the number of the copy of variables that it uses."""
        return range(self.local_replicas)

    @property
    def updating_replicas(self) -> Sequence[int]:
        """The first replica of each copy of variables, by the number of the copy."""
        numbers = self.copy_numbers
        return [numbers.index(copy) for copy in range(len(self.variable_devices))]

    @property
    def sharing(self) -> tuple[int, int, int]:
        """How many share a batch, the first one of this process, and how many it runs."""
        count = self.num_replicas_in_sync
        return count, 0, count

    @property
    def goes_on(self) -> bool:
        """Whether steps are taken again where workers die in them."""
        return False

    # Whether new processes take the places of workers that die.
    replaces_workers = False

    def reform(self) -> None:
        """Share the work out again where workers have died."""

    def require_devices(self) -> None:
        """Raise DevicesResetError where the strategy's devices are gone."""
        self.devices[0].require()

    def replica_device_scope(self, replica: int) -> AbstractContextManager[None]:
        """Return the device scope that one replica runs in."""
        return devices.device(self.devices[replica])

    @contextlib.contextmanager
    def replica_scope(self, replica: int) -> Iterator[None]:
        """Work for one replica: on its device, and what is raised says which one it was."""
        try:
            with self.replica_device_scope(replica):
                yield
        except BaseException as error:
            number = self.first_replica + replica
            note = f"Raised in replica {number} on {self.devices[replica].full_name}."
            if note not in getattr(error, "__notes__", ()):  # It may pass here more than once.
                error.add_note(note)
            raise

    @property
    def shares_memory(self) -> bool:
        """Whether the replicas' devices read each other's memory: the host's, or that of a card."""
        return len({device.backend.memory for device in self.devices}) == 1

    @property
    def is_shared(self) -> bool:
        """Whether replicas run in other processes too."""
        return self.local_replicas < self.num_replicas_in_sync

    def owns(self, variable: Variable) -> bool:
        """Return whether a variable was made in this strategy's scope."""
        raise NotImplementedError

    @overload
    def reduce(
        self, reduce_op: ReduceOp | str, value: _OneValue, axis: int | None = None
    ) -> Tensor: ...

    @overload
    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any: ...

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any:
        """Return the sum or mean of a value over the replicas, and over an axis of its parts.

        Args:
            reduce_op: `ReduceOp.SUM`, `ReduceOp.MEAN` or their names in any case.
            value: Per-replica values, or a structure of them.
            axis: None reduces over the replicas alone; an axis is reduced too, and a mean then
                divides by the number of all elements along it, whatever the parts' sizes.

        Raises:
            ValueError: An unknown `reduce_op`, an `axis` that is not there, or the sum of a value
                that is not per-replica.
            RuntimeError: The call is made in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> float(strategy.reduce("sum", mr.constant([1.0, 2.0]), axis=0))
            3.0
        """
        op = ReduceOp.of(reduce_op)
        check_cross_replica(
            "mr.distribute.Strategy.reduce requires cross-replica context, use "
            "get_replica_context().all_reduce() instead."
        )
        check_parts(value, self.local_replicas)
        with enter(self, None):
            return _nest.map_structure(lambda leaf: self.__reduced(op, leaf, axis), value)

    @overload
    def gather(self, value: _OneValue, axis: int) -> Tensor: ...

    @overload
    def gather(self, value: Any, axis: int) -> Any: ...

    def gather(self, value: Any, axis: int) -> Any:
        """Return the replicas' values, one after the other along an axis, as one tensor.

        Args:
            value: Per-replica values, or a structure of them. The parts' sizes may differ along
                `axis` alone.
            axis: The axis, counted from the end where it is negative.

        Raises:
            ValueError: `axis` is not there.
            InvalidArgumentError: The shapes differ along another axis.
            RuntimeError: The call is made in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> strategy.gather(mr.constant([1, 2]), axis=0).numpy()
            array([1, 2], dtype=int32)
        """
        check_cross_replica(
            "mr.distribute.Strategy.gather method requires cross-replica context, use "
            "get_replica_context().all_gather() instead"
        )
        check_parts(value, self.local_replicas)
        with enter(self, None):
            return _nest.map_structure(lambda leaf: self.__gathered(leaf, axis), value)

    def reduce_parts(self, op: ReduceOp, parts: list[Tensor]) -> Tensor:
        """Return the sum or mean of the replicas' tensors."""
        return self._cross_device_ops.reduce(op, parts, joining_device(parts), self._options)

    def batch_all_reduce(
        self,
        reduce_op: ReduceOp | str,
        values: Sequence[Any],
        options: CommunicationOptions | None = None,
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
        return [Mirrored(parts) for parts in self._all_reduced(reduce_op, values, options)]

    def sum_gradients(self, variables: Sequence[Variable], gradients: Sequence[Any]) -> Any:
        """Return the sums of gradients over the replicas, packed: `Buckets`, a copy a replica.

        They are numbered as the variables, and lie as these do where a program updates them. So
        the bucket of the last layers, whose gradients are there first, begins first.

        Args:
            variables: The variables.
            gradients: For each its gradient, by replica; None: there is none, and no sum.
        """
        order = [i for i in packing_order(variables) if gradients[i] is not None]
        sums = self._all_reduced(ReduceOp.SUM, [gradients[i] for i in order])
        numbers = {i: place for place, i in enumerate(order)}
        replicas = by_replica(sums, self.local_replicas)
        return Mirrored([replica.renumbered(numbers) for replica in replicas])

    def sum_step(
        self, variables: Sequence[Variable], gradients: Sequence[Any], statistics: Any
    ) -> tuple[Any, Any]:
        """Return the sums of gradients, as `sum_gradients` does, and that of a step's statistics.

        The latter are summed apart: where they are not finite, nothing else need be summed.

        Args:
            variables: The variables.
            gradients: For each its gradient, by replica; None: there is none, and no sum.
            statistics: A tensor, by replica.
        """
        sums = self.sum_gradients(variables, gradients)
        return sums, self.batch_all_reduce(ReduceOp.SUM, [statistics])[0]

    def _all_reduced(
        self, reduce_op: ReduceOp | str, values: Sequence[Any], options: Any = None
    ) -> Sequence[Sequence[Any]]:
        """Return the reduction of each value, by replica."""
        # A tensor may come from elsewhere, such as a constant made outside the replicas.
        batch = [
            [select_leaf(i, value).copy_to(device) for i, device in enumerate(self.devices)]
            for value in values
        ]
        hints = self._options if options is None else options
        return self.__prepared().batch_all_reduce(reduce_op, batch, hints)

    def gather_parts(self, parts: list[Tensor], axis: int) -> tuple[Tensor, int]:
        """Return the tensors of all replicas joined, and where those of this process begin."""
        return self._cross_device_ops.gather(parts, joining_device(parts), axis), 0

    def of_each_worker(self, value: Any, what: str) -> list[Any]:
        """Return a small object of each process, by its number: here, of the only one.

        Args:
            value: That of this process.
            what: What errors call it.
        """
        return [value]

    def check_alike(self, facts: Mapping[str, Sequence[str]], what: str) -> None:
        """Raise where processes differ in what has to be the same on all of them.

        Args:
            facts: By what errors call it: lines that say what this process has.
            what: What they are about to do with it.
        """

    def check_first(self, graph: Graph, name: str) -> None:
        """Raise where processes have recorded other functions, at the first recording of one.

        Args:
            graph: What this process has recorded.
            name: The function's name.
        """

    def join_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return what the replicas of all processes have made, one row behind the other.

        Args:
            rows: What those of this process have made, on the host.
        """
        return rows

    def of_first_replica(self, value: Tensor) -> Tensor:
        """Return the value that the first replica of all has.

        Args:
            value: That of the first replica that this process runs.
        """
        return value

    def batch_all_gather(self, value: Any, axis: int) -> tuple[Mirrored, PerReplica]:
        """Return the replicas' values joined, on each of them, and where each one's part begins.

        Raises:
            ValueError: `axis` is not there, or is not the same on all replicas.
        """
        parts = [adopt(select(i, value), None) for i in range(len(self.devices))]
        _check_axis(axis, parts)
        gathered, start = self.gather_parts(parts, axis)
        starts = list(itertools.accumulate((part.shape[axis] for part in parts), initial=start))
        copies = per_replica_copies(gathered, self.devices)
        return Mirrored(copies), PerReplica(starts[:-1])

    def __reduced(self, op: ReduceOp, value: Any, axis: Any) -> Tensor:
        parts = [adopt(part, None) for part in _parts_of(self, op, value)]
        if axis is None:
            return self.reduce_parts(op, parts)
        _check_axis(axis, parts)
        sums = []
        for part in parts:
            with devices.device(part._device):
                sums.append(ops.reduce_sum(part, axis=axis))
        total = self.reduce_parts(ReduceOp.SUM, sums)
        if op is ReduceOp.SUM:
            return total
        count = self._rows_along(axis, parts)
        with devices.device(total._device):
            mean: Tensor = total / count
            return mean

    def _rows_along(self, axis: int, parts: Sequence[Tensor]) -> Any:
        """Return how many elements the replicas' tensors have along an axis, in all."""
        return sum(part.shape[axis] for part in parts)

    def __gathered(self, value: Any, axis: Any) -> Tensor:
        # A value that is not per-replica is all that there is, as for a mean.
        parts = [adopt(part, None) for part in _parts_of(self, ReduceOp.MEAN, value)]
        _check_axis(axis, parts)
        return self.gather_parts(parts, axis)[0]

    def __prepared(self) -> CrossDeviceOps:
        """Return the collectives, once the devices are connected, where they have to be."""
        try:
            self._cross_device_ops.prepare(self.devices)
        except (CollectiveError, DeviceUnavailableError) as error:
            if self._on_nccl_failure == "raise":
                if "on_nccl_failure" not in str(error):
                    error.add_note(self._how_without_nccl)
                raise
            self._cross_device_ops = choose_without_nccl(self.devices, error)
        return self._cross_device_ops


def _check_axis(axis: Any, parts: Sequence[Tensor]) -> None:
    """Raise ValueError unless all tensors have an axis."""
    for part in parts:
        checked_axis(axis, part.ndim)


def _parts_of(strategy: StrategyBase, op: ReduceOp, value: Any) -> list[Any]:
    """Return the replicas' parts of a value, which is one for all of them where it is a mean."""
    if isinstance(value, DistributedVariable) and strategy.owns(value):
        return [copy_of(value, i).read_value() for i in range(strategy.local_replicas)]
    if isinstance(value, DistributedValues):
        return list(value.values)
    if strategy.local_replicas > 1 and op is ReduceOp.SUM:
        raise ValueError(
            f"A non-DistributedValues value {value} cannot be reduced with the given reduce op "
            f"{op}."
        )
    return [value]
