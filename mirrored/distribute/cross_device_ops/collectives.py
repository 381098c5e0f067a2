"""The interface of the collectives: what a strategy asks of them, and what is checked before.

An algorithm is a subclass, which computes; tensors that do not go together never reach it.
"""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from mirrored import _overrides, devices, ops
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored._reprs import made_with
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.errors import InvalidArgumentError
from mirrored.ops import IndexedSlices
from mirrored.ops.hooks import RecordedTensor, only
from mirrored.ops.tensor import Tensor

Value = TypeVar("Value", bound=Tensor | IndexedSlices)

_LINES = 10  # As many as TensorFlow logs.


class CrossDeviceOps(_overrides.Subclassable):
    """The interface of the collectives: subclasses say how tensors are reduced and broadcast.

    The public methods check; those with `_implementation` in their names compute. A subclass has
    to define `reduce_implementation` alone: the others have a plain way to work by it.

    Example:
        >>> import mirrored as mr
        >>> class Largest(mr.distribute.CrossDeviceOps):
        ...     def reduce_implementation(self, reduce_op, values, destination, options):
        ...         with mr.device(destination.name):
        ...             return mr.reduce_max(mr.convert_to_tensor(values), axis=0)
        >>> float(Largest().reduce("sum", [mr.constant(1.0), mr.constant(3.0)], "CPU:0"))
        3.0
    """

    __overrides__ = _overrides.CROSS_DEVICE_OPS

    def __repr__(self) -> str:
        return made_with(self)

    @cached_property
    def _lines(self) -> "FirstLines":
        """The lines to log about reductions."""
        return FirstLines()

    def check_devices(self, devices: Sequence[Device]) -> None:
        """Raise InvalidArgumentError where these collectives cannot reduce between devices.

        A strategy asks when it is made, before anything changes. By default all devices will do.

        Args:
            devices: The replicas' devices.
        """

    def prepare(self, devices: Sequence[Device]) -> None:
        """Do what has to be done once before values can be reduced between devices.

        A strategy asks before each batch, so it is quick once that is done. By default nothing is.

        Args:
            devices: The replicas' devices.

        Raises:
            CollectiveError: The devices could not be connected.
            DeviceUnavailableError: Something that it takes is missing; the text says what mends
                that.
        """

    def make_deterministic(self, devices: Sequence[Device]) -> None:
        """Let sums between devices have the same bits in every run; by default they do.

        Args:
            devices: The replicas' devices.

        Raises:
            RuntimeError: It is too late for that in this process.
        """

    def close(self) -> None:
        """Give back what is kept between calls, such as connections; another use takes it again.

        Example:
            >>> import mirrored as mr
            >>> mr.distribute.NcclAllReduce().close()
        """

    def reduce(
        self,
        reduce_op: ReduceOp | str,
        values: Sequence[Value],
        destination: Device | str,
        options: CommunicationOptions | None = None,
    ) -> Value:
        """Return the reduction of one value a replica, on one device.

        Args:
            reduce_op: Sum or mean.
            values: The replicas' tensors, all of one shape and dtype, or their indexed slices.
            destination: The device of the result.
            options: Hints for this call.

        Raises:
            InvalidArgumentError: No values, shapes or dtypes that differ, no such device, or
                devices that these collectives cannot reduce between.
        """
        op, hints = ReduceOp.of(reduce_op), _hints(options)
        self._check(values)
        device = devices.get_device(destination)
        with only():
            if isinstance(values[0], IndexedSlices):
                return cast(Value, self.reduce_slices_implementation(op, cast(Any, values), device))
            return cast(Value, self.reduce_implementation(op, cast(Any, values), device, hints))

    def batch_reduce(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Sequence[Tensor], Device | str]],
        options: CommunicationOptions | None = None,
    ) -> list[Tensor]:
        """Return the reductions of several values, each on a separate device.

        Args:
            reduce_op: Sum or mean.
            value_destination_pairs: For each value its tensors, by replica, and the device of
                its result.
            options: Hints for this call.

        Raises:
            InvalidArgumentError: As `reduce` raises it, for any of the pairs.
        """
        op, hints = ReduceOp.of(reduce_op), _hints(options)
        for values, _ in value_destination_pairs:
            self._check(values)
        pairs = [(values, devices.get_device(where)) for values, where in value_destination_pairs]
        with only():
            return self.batch_reduce_implementation(op, pairs, hints)

    def batch_all_reduce(
        self,
        reduce_op: ReduceOp | str,
        batch: Sequence[Sequence[Value]],
        options: CommunicationOptions | None = None,
    ) -> Sequence[list[Value]]:
        """Reduce many values, and return each result on the devices that the value came from.

        What is recorded may keep them packed: it takes a result out where it is asked for.

        Args:
            reduce_op: Sum or mean.
            batch: For each value its tensors or indexed slices, by replica.
            options: Hints for this call.

        Raises:
            InvalidArgumentError: Shapes or dtypes that differ between replicas, or devices that
                these collectives cannot reduce between.
        """
        op, hints = ReduceOp.of(reduce_op), _hints(options)
        for values in batch:
            self._check(values)
        dense = [values for values in batch if not isinstance(values[0], IndexedSlices)]
        with only():
            reduced = self.batch_all_reduce_implementation(op, cast(Any, dense), hints)
            if len(dense) == len(batch):
                return cast("Sequence[list[Value]]", reduced)
            rest, results = iter(reduced), list[Any]()
            for parts in cast("Sequence[Any]", batch):
                if isinstance(parts[0], IndexedSlices):
                    where = [part.values._device for part in parts]
                    total = self.reduce_slices_implementation(op, parts, where[0])
                    results.append([total.copy_to(device) for device in where])
                else:
                    results.append(next(rest))
            return results

    def broadcast(self, tensor: Tensor, destinations: Sequence[Device | str]) -> list[Tensor]:
        """Return a tensor's copies on devices, in their order.

        Args:
            tensor: The tensor.
            destinations: The devices of the copies.

        Raises:
            InvalidArgumentError: No tensor, no devices, or a device that is not there.
        """
        _check_tensors([tensor])
        if isinstance(destinations, str | Device) or not destinations:
            raise InvalidArgumentError(
                "A broadcast needs a list of at least one device. Received: "
                f"destinations={destinations!r}."
            )
        where = [devices.get_device(destination) for destination in destinations]
        with only():
            return self.broadcast_implementation(tensor, where)

    def gather(self, values: Sequence[Tensor], destination: Device | str, axis: int) -> Tensor:
        """Return the replicas' tensors joined along an axis, in replica order, on one device.

        Args:
            values: The replicas' tensors, which may differ in size along `axis` alone.
            destination: The device of the result.
            axis: The axis, counted from the front or, where negative, from the end.

        Raises:
            ValueError: The tensors have no such axis.
            InvalidArgumentError: No values, or scalars; ranks, other sizes or dtypes that differ;
                no such device.
        """
        device = devices.get_device(destination)
        along = _check_joinable(values, axis)
        with only():
            return self.gather_implementation(values, device, along)

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        raise self._has_no("reduce_implementation")

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[Sequence[Tensor], Device]],
        options: CommunicationOptions,
    ) -> list[Tensor]:
        """Compute `batch_reduce`, one value after the other; its arguments are checked."""
        return [
            self.reduce_implementation(reduce_op, values, destination, options)
            for values, destination in value_destination_pairs
        ]

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`: reduce to each value's first device, and broadcast."""
        results = []
        for values in batch:
            where = [value._device for value in values]
            pairs = [(values, where[0])]  # One at a time: they need not all have room at once.
            (reduced,) = self.batch_reduce_implementation(reduce_op, pairs, options)
            results.append(self.broadcast_implementation(reduced, where))
        return results

    def broadcast_implementation(
        self, tensor: Tensor, destinations: Sequence[Device]
    ) -> list[Tensor]:
        """Compute `broadcast`; its arguments are checked."""
        copies = []
        for destination in destinations:
            with devices.device(destination):
                copies.append(ops.identity(tensor))
        return copies

    def gather_implementation(
        self, values: Sequence[Tensor], destination: Device, axis: int
    ) -> Tensor:
        """Compute `gather`; its arguments are checked, and `axis` is counted from the front."""
        with devices.device(destination):
            return ops.concat(list(values), axis=axis)

    def reduce_slices_implementation(
        self, reduce_op: ReduceOp, slices: Sequence[IndexedSlices], destination: Device
    ) -> IndexedSlices:
        """Compute `reduce` of indexed slices; its arguments are checked."""
        return reduce_slices(reduce_op, slices, destination)

    def _check(self, values: Sequence[Any]) -> None:
        """Raise where values do not go together, or where their devices will not do."""
        if isinstance(values, list | tuple) and values and isinstance(values[0], IndexedSlices):
            check_slices(values)
            self.check_devices([tensor.values._device for tensor in values])
            return
        _check_tensors(values)
        for i, value in enumerate(values):
            if value.spec != values[0].spec:
                raise InvalidArgumentError(
                    "Replicas can reduce only tensors of the same shape and dtype. Received: "
                    f"{values[0].shape} {values[0].dtype.name} from replica 0 and {value.shape} "
                    f"{value.dtype.name} from replica {i}."
                )
        self.check_devices([value._device for value in values])

    def _has_no(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no `{method}`. Define it in the subclass, or use "
            "ReductionToOneDevice."
        )


class FirstLines:
    """Logs the first lines about reductions, from any thread: one at INFO, nine more at DEBUG.

    Args:
        lines: The number of lines in all.
    """

    def __init__(self, lines: int = _LINES) -> None:
        self._levels = iter(([logging.INFO] + [logging.DEBUG] * lines)[:lines])

    def __reduce__(self) -> Any:
        return FirstLines, ()

    def log(self, text: str, *arguments: object) -> None:
        """Log one more line, or nothing after the last one."""
        level = next(self._levels, None)
        if level is not None:
            logger.log(level, text, *arguments)


def of_sum(reduce_op: ReduceOp, total: Tensor, count: int) -> Tensor:
    """Return a sum of several values as what was asked for: itself, or their mean."""
    return total / count if reduce_op is ReduceOp.MEAN else total


def per_replica_copies(tensor: Tensor, where: Sequence[Device]) -> list[Tensor]:
    """Return a tensor for each replica; those of replicas of one device share its memory.

    They are different objects, as those of different devices are: what is one object on all
    replicas counts as one value.

    Args:
        tensor: The value that all replicas get.
        where: The device of each replica.
    """
    first: dict[Device, Tensor] = {}
    copies: list[Tensor] = []
    for device in where:
        copy = first.get(device)
        if copy is None:
            copy = first[device] = tensor.copy_to(device)
        elif isinstance(copy, RecordedTensor):
            copy = RecordedTensor(copy.recorder, copy.value, device, copy.spec)
        else:
            copy = Tensor(copy._array, copy._storage, device, copy.spec)
        copies.append(copy)
    return copies


def checked_axis(axis: Any, rank: int) -> int:
    """Return an axis as Python's integer, or raise ValueError where there is none such."""
    number = as_integer(axis)
    if number is None or not -rank <= number < rank:
        raise ValueError(f"`axis` = {axis!r} out of range for `value` with rank {rank}")
    return number


def joining_device(values: Sequence[Tensor]) -> Device:
    """Return where the replicas' tensors are joined by default: the CPU, or where a lone one is."""
    return values[0]._device if len(values) == 1 else devices.get_device("CPU:0")


def _hints(options: Any) -> CommunicationOptions:
    if options is None:
        return CommunicationOptions()
    if not isinstance(options, CommunicationOptions):
        raise ValueError(
            "`options` must be a mr.distribute.experimental.CommunicationOptions. Received: "
            f"{options!r}."
        )
    return options


def _check_tensors(values: Any) -> None:
    if not isinstance(values, list | tuple):
        raise InvalidArgumentError(
            f"Collectives take a list of tensors, one per replica. Received: {values!r:.80}. For "
            "the parts of a per-replica value, call strategy.experimental_local_results(value)."
        )
    if not values:
        raise InvalidArgumentError("There is nothing to reduce. Received: no values.")
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise InvalidArgumentError(
                f"Collectives take tensors. Received: {value!r:.80} from replica {i}. Convert it "
                "with mr.convert_to_tensor."
            )


def _check_joinable(values: Sequence[Tensor], axis: Any) -> int:
    """Return the axis to join along, counted from the front."""
    _check_tensors(values)
    first = values[0]
    for i, value in enumerate(values):
        if value.ndim != first.ndim or value.ndim == 0:
            raise InvalidArgumentError(
                "Replicas can gather only tensors of the same rank, which must be at least 1. "
                f"Received: shapes {first.shape} from replica 0 and {value.shape} from replica "
                f"{i}. Add an axis to scalars with mr.expand_dims."
            )
        if value.dtype != first.dtype:
            raise InvalidArgumentError(
                "Replicas can gather only tensors of the same dtype. Received: "
                f"{first.dtype.name} from replica 0 and {value.dtype.name} from replica {i}."
            )
    number = checked_axis(axis, first.ndim) % first.ndim
    for i, value in enumerate(values):
        for d, (size, wanted) in enumerate(zip(value.shape, first.shape, strict=True)):
            if d != number and size != wanted:
                raise InvalidArgumentError(
                    f"Dimension {d} in both shapes must be equal: the gathered tensors may differ "
                    f"in size only along axis {number}. Received: shapes {first.shape} from "
                    f"replica 0 and {value.shape} from replica {i}."
                )
    return number


def check_slices(slices: Sequence[Any]) -> None:
    """Raise InvalidArgumentError where replicas' rows are not those of one tensor."""
    first = slices[0]
    for i, part in enumerate(slices):
        if not isinstance(part, IndexedSlices) or _kind(part) != _kind(first):
            raise InvalidArgumentError(
                "Replicas can reduce only IndexedSlices of the same dtype, row shape and dense "
                f"shape. Received: {first!r} from replica 0 and {part!r} from replica {i}."
            )


def reduce_slices(
    reduce_op: ReduceOp, slices: Sequence[IndexedSlices], destination: Device
) -> IndexedSlices:
    """Return the reduction of the replicas' rows: each index once, in rising order."""
    with devices.device("CPU:0"):
        values = ops.concat([part.values for part in slices], axis=0)
        indices = ops.concat([part.indices for part in slices], axis=0)
        rows, places = np.unique(np.asarray(indices.numpy()), return_inverse=True)
        sums = ops.unsorted_segment_sum(values, places, len(rows))
        if reduce_op is ReduceOp.MEAN and len(slices) > 1:
            sums = sums / len(slices)
        total = IndexedSlices(sums, rows, slices[0].dense_shape)
    return total.copy_to(destination)


def _kind(slices: IndexedSlices) -> tuple[Any, ...]:
    return slices.dtype, slices.indices.dtype, slices.values.shape[1:], slices.dense_shape
