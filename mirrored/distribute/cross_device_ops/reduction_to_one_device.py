"""The reference: every value is copied to one device, where they are summed in replica order.

A recorded step has the same sums in fewer calls, and so the same bits.
"""

from collections.abc import Callable, Sequence

from mirrored import _overrides, devices, ops
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.buckets import alike, reduced_as_vectors
from mirrored.distribute.cross_device_ops.collectives import (
    CrossDeviceOps,
    FirstLines,
    joining_device,
    of_sum,
)
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.ops.hooks import active_recorder
from mirrored.ops.tensor import Tensor


class ReductionToOneDevice(CrossDeviceOps):
    """Copies all values to one device, reduces them there in replica order, and copies back.

    Args:
        reduce_to_device: Where to reduce; None: the CPU, or the device of a lone value. A recorded
            step takes the first replica's device in place of the CPU.
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

    __overrides__ = _overrides.ALL_REDUCES

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
                "`accumulation_fn` must be a function of a list of tensors. Received: "
                f"{accumulation_fn!r}"
            )
        self._reduce_to = reduce_to_device
        self._accumulate = accumulation_fn or ops.add_n

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        _log(self._lines, self._device_for(values), [destination])
        return self.broadcast_implementation(self._reduced(reduce_op, values), [destination])[0]

    def batch_all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        batch: Sequence[Sequence[Tensor]],
        options: CommunicationOptions,
    ) -> Sequence[list[Tensor]]:
        """Compute `batch_all_reduce`; its arguments are checked."""
        where = [[value._device for value in values] for values in batch]
        several = bool(where) and len(where[0]) > 1
        if active_recorder() is not None and self._accumulate is ops.add_n and several:
            # The sum can be anywhere: beside the first replica's update, which reads it.
            chosen = None if self._reduce_to is None else devices.get_device(self._reduce_to)
            for destinations in where:
                _log(self._lines, chosen or destinations[0], destinations)

            def reduced(_: int, vectors: list[Tensor]) -> list[Tensor]:
                total = sum_on(vectors, chosen or vectors[0]._device)
                with devices.device(total._device):
                    result = of_sum(reduce_op, total, len(vectors))
                return [result.copy_to(vector._device) for vector in vectors]

            # As one vector of each dtype a replica: one sum, one pass, and the order of the sum.
            return reduced_as_vectors(batch, alike(batch), reduced)
        for values, destinations in zip(batch, where, strict=True):
            _log(self._lines, self._device_for(values), destinations)
        if active_recorder() is not None and not several:
            return [list(values) for values in batch]  # Nothing can change what is recorded.
        return [
            self.broadcast_implementation(self._reduced(reduce_op, values), destinations)
            for values, destinations in zip(batch, where, strict=True)
        ]

    def _reduced(self, reduce_op: ReduceOp, values: Sequence[Tensor]) -> Tensor:
        if len(values) == 1:
            return values[0]
        with devices.device(self._device_for(values)):
            return of_sum(reduce_op, self._accumulate(list(values)), len(values))

    def _device_for(self, values: Sequence[Tensor]) -> Device:
        if self._reduce_to is not None:
            return devices.get_device(self._reduce_to)
        return joining_device(values)


def _log(lines: FirstLines, device: Device, destinations: Sequence[Device]) -> None:
    lines.log(
        "Reduce to %s then broadcast to %s.",
        device.full_name,
        tuple(target.full_name for target in destinations),
    )


def sum_on(tensors: Sequence[Tensor], device: Device) -> Tensor:
    """Return the sum of tensors on a device; a program takes what it can read where it is.

    Args:
        tensors: The tensors, which are added in their order.
        device: The device.
    """
    recorder = active_recorder()
    memories = {tensor._device.backend.memory for tensor in tensors}
    if recorder is not None and memories == {device.backend.memory}:
        return recorder.sum_over_devices(tensors, device)
    with devices.device(device):
        return ops.add_n(list(tensors))
