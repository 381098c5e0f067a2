"""The strategy that keeps variables on one device, and computes on several.

It runs and reduces as `MirroredStrategy` does; a variable has one copy, which replicas read.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import devices
from mirrored._logging import logger
from mirrored.devices import Device, LogicalDevice
from mirrored.distribute.distributed_variables import CentralVariable
from mirrored.distribute.mirrored_strategy import MirroredStrategy
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import only
from mirrored.variables import Variable, VariableSynchronization


class CentralStorageStrategy(MirroredStrategy):
    """Trains one model on several devices, with its variables and the optimizer's on one of them.

    Each replica copies what it needs to its device. Results are those of `MirroredStrategy`, and
    so of one device on the whole batch; a step takes longer, and devices have room for less.

    Args:
        compute_devices: The replicas' devices, as names or logical devices; None or an empty list:
            every logical GPU, or the CPU where there is none.
        parameter_device: The device of variables; None: the replicas' where there is one GPU, else
            the CPU.

    Raises:
        ValueError: A device is named twice or its name cannot be parsed.
        InvalidArgumentError: A device does not exist; the message lists those that do.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> strategy = mr.distribute.experimental.CentralStorageStrategy()
        >>> with strategy.scope():
        ...     v = mr.Variable(2.0)
        >>> v.device[-5:], [float(each) for each in strategy.run(lambda: v * 3.0).values]
        ('CPU:0', [6.0, 6.0])
    """

    def __init__(
        self,
        compute_devices: Sequence[str | LogicalDevice] | None = None,
        parameter_device: str | LogicalDevice | None = None,
    ) -> None:
        """Look the devices up, which initialises them."""
        if parameter_device is not None:
            try:
                self._parameter_device = devices.get_device(parameter_device)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(
                    f"{error} [CentralStorageStrategy(parameter_device={parameter_device!r})]"
                ) from None
        super().__init__(compute_devices)

    def _log_devices(self, workers: str = "") -> None:
        if not hasattr(self, "_parameter_device"):
            alone = len(self._devices) == 1
            self._parameter_device = self._devices[0] if alone else devices.get_device("CPU:0")
        logger.info(
            "Using %s with compute_devices = %s, variable_device = %r%s",
            type(self).__name__,
            tuple(device.full_name for device in self._devices),
            self._parameter_device.full_name,
            workers,
        )

    @property
    def variable_devices(self) -> tuple[Device, ...]:
        """The device of variables, alone."""
        return (self._parameter_device,)

    @property
    def copy_numbers(self) -> tuple[int, ...]:
        """For each replica the number of the copy of variables that it uses: the single one."""
        return (0,) * len(self._devices)

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with; see `Strategy`."""
        return {
            "compute_devices": [device.full_name for device in self._devices],
            "parameter_device": self._parameter_device.full_name,
        }

    def _created(self, next_creator: Callable[..., Variable], kwargs: dict[str, Any]) -> Variable:
        """Return a variable on the one device; those that are summed when read are on all."""
        mode = kwargs["synchronization"]
        if mode in (VariableSynchronization.ON_READ, VariableSynchronization.NONE):
            return super()._created(next_creator, kwargs)
        kwargs["synchronization"] = VariableSynchronization.ON_WRITE
        with only(), devices.device(self._parameter_device):
            copy: Any = next_creator(**kwargs)
        return CentralVariable(self, [copy])
