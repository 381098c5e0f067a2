"""Strategies of one replica: the one in force outside all scopes, and one on a given device.

There is nothing to reduce and nobody to wait for, so code runs as it would without a strategy.
"""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mirrored import devices, ops
from mirrored.devices import Device, LogicalDevice
from mirrored.distribute.context import ReplicaContext, set_default_replica
from mirrored.distribute.cross_device_ops import ReductionToOneDevice
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.distributed_variables import DistributedVariable
from mirrored.distribute.replicas import merge_alone
from mirrored.distribute.strategy import Strategy
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import only
from mirrored.ops.tensor import Tensor
from mirrored.variables import Variable


class _SingleStrategy(Strategy):
    """What strategies of one replica have in common."""

    def __init__(self) -> None:
        super().__init__(ReductionToOneDevice())

    def batch_all_reduce(
        self,
        reduce_op: ReduceOp | str,
        values: Sequence[Any],
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """Return the values: they are all that there is to reduce."""
        return [value for (value,) in self._all_reduced(reduce_op, values, options)]

    def sum_gradients(self, variables: Sequence[Variable], gradients: Sequence[Any]) -> Any:
        """Return the gradients: another strategy's optimizer may take them for all replicas."""
        return Buckets(gradients)

    def _all_reduced(
        self, reduce_op: ReduceOp | str, values: Sequence[Any], options: Any = None
    ) -> Sequence[Sequence[Any]]:
        ReduceOp.of(reduce_op)
        with only():
            return [[ops.identity(value)] for value in values]

    def reduce_parts(self, op: ReduceOp, parts: list[Tensor]) -> Tensor:
        """Return the only part."""
        return parts[0]

    def owns(self, variable: Variable) -> bool:
        """Return whether a variable has one copy."""
        return not isinstance(variable, DistributedVariable)


class DefaultStrategy(_SingleStrategy):
    """What is in force outside all scopes: one replica, placed as any other code is."""

    def __reduce__(self) -> str:
        return "DEFAULT_STRATEGY"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device that the placement rules choose now."""
        return (devices.place("Identity", ("GPU", "CPU")),)

    def replica_device_scope(self, replica: int) -> AbstractContextManager[None]:
        """Return a scope that changes nothing."""
        return contextlib.nullcontext()


class OneDeviceStrategy(_SingleStrategy):
    """Runs on one device: variables made in its scope are there, and `run` computes there.

    A script written for several replicas runs under it as it is, on one of them.

    Args:
        device: The device, as a name or a logical device.

    Raises:
        ValueError: The name cannot be parsed.
        InvalidArgumentError: There is no such device; the message lists those that there are.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.distribute.OneDeviceStrategy("CPU:0")
        >>> with strategy.scope():
        ...     v = mr.Variable(2.0)
        >>> float(strategy.run(lambda x: v * x, args=(3.0,)))
        6.0
    """

    def __init__(self, device: str | LogicalDevice) -> None:
        """Look the device up, which initialises the devices."""
        super().__init__()
        try:
            self._device = devices.get_device(device)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error} [OneDeviceStrategy(device={device!r})]") from None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device, alone."""
        return (self._device,)

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with; see `Strategy`."""
        return {"device": self._device.full_name}

    def create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        """Return a variable that is made in this strategy's scope; see `Strategy`."""
        with devices.device(self._device):
            return next_creator(**kwargs)


DEFAULT_STRATEGY = DefaultStrategy()
set_default_replica(ReplicaContext(DEFAULT_STRATEGY, 0, merge_alone(DEFAULT_STRATEGY)))
