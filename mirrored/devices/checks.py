"""What the public functions about devices check before they change anything.

Kept together so that the same mistake gets the same sentence everywhere.
"""

from __future__ import annotations

import math

from mirrored._numbers import as_integer
from mirrored.devices.configuration import LogicalDeviceConfiguration, configuration
from mirrored.devices.names import PhysicalDevice
from mirrored.errors import InvalidArgumentError


def checked_bool(value: object, name: str) -> bool:
    """Return a flag that a user gave.

    Raises:
        InvalidArgumentError: It is something else than a bool (or 0 or 1).
    """
    if not isinstance(value, int) or value not in (0, 1):
        raise InvalidArgumentError(f"`{name}` must be True or False. Received: {value!r}")
    return bool(value)


def checked_count(value: object, name: str) -> int:
    """Return a whole number from 0 that a user gave.

    Raises:
        InvalidArgumentError: It is something else.
    """
    count = as_integer(value)
    if count is None or count < 0:
        raise InvalidArgumentError(
            f"`{name}` must be a whole number, 0 or more. Received: {name}={value!r}"
        )
    return count


def checked_limit(megabytes: object) -> float | None:
    """Return a memory limit in MB that a user gave, None for no limit.

    Raises:
        InvalidArgumentError: It is not a finite number above 0.
    """
    if megabytes is None:
        return None
    if (
        isinstance(megabytes, bool)
        or not isinstance(megabytes, (int, float))
        or not 0 < megabytes < math.inf  # Which NaN is not either.
    ):
        raise InvalidArgumentError(
            "`memory_limit` must be a number of MB above 0, or None for no limit. "
            f"Received: memory_limit={megabytes!r}"
        )
    return megabytes


def checked_parts(device: PhysicalDevice, parts: object) -> list[LogicalDeviceConfiguration]:
    """Return the logical devices that a user wants of a physical one, as a list.

    Raises:
        InvalidArgumentError: The device cannot be split, or not like this.
    """
    if device.device_type not in ("CPU", "GPU"):
        raise InvalidArgumentError(f"Virtual devices are not supported for {device.device_type}")
    # One configuration alone is a tuple too, but of numbers.
    given = list(parts) if isinstance(parts, (list, tuple)) else []
    if not given or not all(isinstance(part, LogicalDeviceConfiguration) for part in given):
        raise InvalidArgumentError(
            "`logical_devices` must be a list of at least one LogicalDeviceConfiguration. "
            f"Received: {parts!r}"
        )
    for part in given:
        checked_limit(part.memory_limit)
        if device.device_type == "GPU" and part.memory_limit is None:
            raise InvalidArgumentError("Setting memory limit is required for GPU virtual devices")
    if len({part.experimental_priority is None for part in given}) > 1:
        raise InvalidArgumentError("priority must be specified for all virtual devices")
    return given


def known_device(device: object, device_type: str | None = None) -> PhysicalDevice:
    """Return a physical device that a user gave.

    Args:
        device: What the user gave.
        device_type: The type that it must have, None for any.

    Raises:
        InvalidArgumentError: There is no such device, or it is of another type.
    """
    found = configuration.hardware()
    if (
        not isinstance(device, PhysicalDevice)
        or device not in found
        or device_type not in (None, device.device_type)
    ):
        listed = ", ".join(
            known.name for known in found if device_type in (None, known.device_type)
        )
        raise InvalidArgumentError(
            f"Unrecognized device: {device!r}. Use what list_physical_devices() returns: [{listed}]"
        )
    return device


def refuse_if_initialised(what: str) -> None:
    """Raise unless the configuration may still be changed.

    Raises:
        RuntimeError: The devices are in use.
    """
    if configuration.initialised:
        raise RuntimeError(
            f"{what} cannot be modified after being initialized. Do this at the start of the "
            "program, before the first tensor, strategy or list_logical_devices(), or after "
            "mr.config.experimental.reset_devices()."
        )
