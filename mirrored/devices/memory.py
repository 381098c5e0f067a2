"""How much memory logical devices use, now and at most.

The figures are those of the device's own pool: tensors, buffers and workspaces, views uncounted.
"""

from __future__ import annotations

from mirrored._arguments import explained
from mirrored.devices.names import DeviceSpec, LogicalDevice
from mirrored.devices.placement import describe_devices, find_device, to_spec
from mirrored.devices.runtime import Device
from mirrored.errors import InvalidArgumentError


@explained
def get_memory_info(device: str | LogicalDevice | DeviceSpec | Device) -> dict[str, int]:
    """Return the memory in use on a logical device, initialising the devices.

    Args:
        device: A logical device, or its name with an index, as in 'GPU:0'.

    Returns:
        ``current``, bytes in use now, and ``peak``, the most since the start or the last
        ``reset_memory_stats``.

    Raises:
        ValueError: The name has no type or index, or there is no such device.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.config.experimental.get_memory_info("GPU:0")
        {'current': 0, 'peak': 0}
    """
    pool = _measured(device).pool
    return {"current": pool.current, "peak": pool.peak}


@explained
def reset_memory_stats(device: str | LogicalDevice | DeviceSpec | Device) -> None:
    """Start measuring a logical device's peak memory again from what is in use now.

    Args:
        device: A logical device, or its name with an index, as in 'GPU:0'.

    Raises:
        ValueError: The name has no type or index, or there is no such device.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(1)
        >>> mr.config.experimental.reset_memory_stats("GPU:0")
    """
    _measured(device).pool.reset_peak()


def _measured(name: str | LogicalDevice | DeviceSpec | Device) -> Device:
    try:
        spec = to_spec(name)
    except ValueError:
        spec = DeviceSpec()
    if spec.device_type is None or spec.device_index is None:
        raise InvalidArgumentError(
            f"Failed parsing device name: {name!r}. Note a valid device string should at least "
            'contain a device type and a device index, like "GPU:0".'
        )
    found = find_device(spec)
    if found is None:
        raise InvalidArgumentError(f"No matching devices found for {name!r}. {describe_devices()}")
    return found
