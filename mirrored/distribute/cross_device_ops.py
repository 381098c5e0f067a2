"""Collectives: how values of several devices are reduced and given back to all of them.

They are one interface with a reference, `ReductionToOneDevice`, that every other is held to.
"""

import threading
from collections.abc import Callable, Sequence

from mirrored import devices, ops
from mirrored._logging import logger
from mirrored.devices import Device
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.errors import InvalidArgumentError
from mirrored.ops.listeners import only
from mirrored.ops.recording import Recorder, active_recorder
from mirrored.ops.tensor import Tensor

_LINES = 10  # The line that names the devices is the same every time: ten of them are enough.


class CrossDeviceOps:
    """The interface of the collectives: subclasses say how tensors are reduced and broadcast.

    The public methods check; those with `_implementation` in their names compute.
    """

    def reduce(
        self, reduce_op: ReduceOp | str, values: Sequence[Tensor], destination: Device | str
    ) -> Tensor:
        """Return the reduction of one tensor a replica, on one device.

        Args:
            reduce_op: Sum or mean.
            values: The replicas' tensors, all of one shape and dtype.
            destination: The device of the result.

        Raises:
            InvalidArgumentError: No values, shapes or dtypes that differ, no such device.
        """
        _check_alike(values)
        op, device = ReduceOp.of(reduce_op), devices.get_device(destination)
        with only():
            return self.reduce_implementation(op, values, device)

    def batch_all_reduce(
        self, reduce_op: ReduceOp | str, batch: Sequence[Sequence[Tensor]]
    ) -> list[list[Tensor]]:
        """Reduce many tensors, and return each result on the devices that the values came from.

        Args:
            reduce_op: Sum or mean.
            batch: For each value its tensors, by replica.

        Raises:
            InvalidArgumentError: Shapes or dtypes that differ between replicas.
        """
        for values in batch:
            _check_alike(values)
        with only():
            return self.batch_all_reduce_implementation(ReduceOp.of(reduce_op), batch)

    def reduce_implementation(
        self, reduce_op: ReduceOp, values: Sequence[Tensor], destination: Device
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        raise self._has_no("reduce_implementation")

    def batch_all_reduce_implementation(
        self, reduce_op: ReduceOp, batch: Sequence[Sequence[Tensor]]
    ) -> list[list[Tensor]]:
        """Compute `batch_all_reduce`; its arguments are checked."""
        raise self._has_no("batch_all_reduce_implementation")

    def _has_no(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no `{method}`. Define it in the subclass, or use "
            "ReductionToOneDevice."
        )


class ReductionToOneDevice(CrossDeviceOps):
    """Copies all values to one device, reduces them there in replica order, and copies back.

    Args:
        reduce_to_device: Where to reduce; None: the CPU, or the device of a lone value.
        accumulation_fn: From the list of tensors to their sum; None: `add_n`, which adds in
            the order of the list.

    Raises:
        ValueError: `reduce_to_device` cannot be parsed, or `accumulation_fn` not be called.

    Example:
        >>> import mirrored as mr
        >>> mr.config.set_logical_device_configuration(
        ...     mr.config.list_physical_devices("CPU")[0],
        ...     [mr.config.LogicalDeviceConfiguration()] * 2,
        ... )
        >>> strategy = mr.MirroredStrategy(
        ...     ["CPU:0", "CPU:1"], cross_device_ops=mr.distribute.ReductionToOneDevice()
        ... )
        >>> strategy.num_replicas_in_sync
        2
    """

    def __init__(
        self,
        reduce_to_device: str | None = None,
        accumulation_fn: Callable[[list[Tensor]], Tensor] | None = None,
    ) -> None:
        """Check the arguments; devices are looked up when values are reduced."""
        if reduce_to_device is not None:
            devices.device(reduce_to_device)  # Raises on a name that cannot be parsed.
        if accumulation_fn is not None and not callable(accumulation_fn):
            raise ValueError(
                f"accumulation_fn is a function of a list of tensors. Received: {accumulation_fn!r}"
            )
        self._reduce_to = reduce_to_device
        self._accumulate = accumulation_fn or ops.add_n
        self._lines_left = _LINES
        self._lock = threading.Lock()

    def reduce_implementation(
        self, reduce_op: ReduceOp, values: Sequence[Tensor], destination: Device
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        self._log(values, (destination.full_name,))
        reduced = self._reduced(reduce_op, values)
        with devices.device(destination):
            return ops.identity(reduced)

    def batch_all_reduce_implementation(
        self, reduce_op: ReduceOp, batch: Sequence[Sequence[Tensor]]
    ) -> list[list[Tensor]]:
        """Compute `batch_all_reduce`; its arguments are checked."""
        for values in batch:
            self._log(values, tuple(value.device for value in values))
        recorder = active_recorder()
        if recorder is not None and self._accumulate is ops.add_n and _share_host_memory(batch):
            return _recorded_all_reduce(recorder, reduce_op, batch)
        results = []
        for values in batch:
            reduced = self._reduced(reduce_op, values)
            copies = []
            for value in values:
                with devices.device(value._device):
                    copies.append(ops.identity(reduced))
            results.append(copies)
        return results

    def _reduced(self, reduce_op: ReduceOp, values: Sequence[Tensor]) -> Tensor:
        if len(values) == 1:
            return values[0]
        with devices.device(self._device_for(values)):
            total = self._accumulate(list(values))
            return total / float(len(values)) if reduce_op is ReduceOp.MEAN else total

    def _device_for(self, values: Sequence[Tensor]) -> Device:
        if self._reduce_to is not None:
            return devices.get_device(self._reduce_to)
        return values[0]._device if len(values) == 1 else devices.get_device("CPU:0")

    def _log(self, values: Sequence[Tensor], destinations: tuple[str, ...]) -> None:
        with self._lock:
            if not self._lines_left:
                return
            self._lines_left -= 1
        logger.info(
            "Reduce to %s then broadcast to %s.", self._device_for(values).full_name, destinations
        )


def _share_host_memory(batch: Sequence[Sequence[Tensor]]) -> bool:
    """Whether these are tensors of several devices whose memory the host reads."""
    devices_used = [value._device for values in batch for value in values]
    several = bool(batch) and len(batch[0]) > 1
    return several and all(each.backend.host_readable for each in devices_used)


def _recorded_all_reduce(
    recorder: Recorder, reduce_op: ReduceOp, batch: Sequence[Sequence[Tensor]]
) -> list[list[Tensor]]:
    """Note the reduction of each dtype's values as one vector a replica: one sum, one pass.

    The order of the sum is that of the reference, so its bits are.
    """
    results: list[list[Tensor]] = [[] for _ in batch]
    for dtype in dict.fromkeys(values[0].dtype for values in batch):
        members = [i for i, values in enumerate(batch) if values[0].dtype == dtype]
        flats = []
        for replica, value in enumerate(batch[0]):
            with devices.device(value._device):
                parts = [ops.reshape(batch[i][replica], (batch[i][0].size,)) for i in members]
                flats.append(ops.concat(parts, axis=0))
        total = recorder.sum_over_devices(flats, flats[0]._device)
        if reduce_op is ReduceOp.MEAN:
            with devices.device(total._device):
                total = total / float(len(flats))
        for flat in flats:
            copy, start = total.copy_to(flat._device), 0
            with devices.device(flat._device):
                for i in members:
                    stop = start + batch[i][0].size
                    results[i].append(ops.reshape(copy[start:stop], batch[i][0].shape))
                    start = stop
    return results


def _check_alike(values: Sequence[Tensor]) -> None:
    if not values:
        raise InvalidArgumentError("There is nothing to reduce. Received: no values.")
    for i, value in enumerate(values):
        if value.spec != values[0].spec:
            raise InvalidArgumentError(
                "Replicas reduce tensors of one shape and dtype. Received: "
                f"{values[0].shape} {values[0].dtype.name} from replica 0 and {value.shape} "
                f"{value.dtype.name} from replica {i}."
            )
