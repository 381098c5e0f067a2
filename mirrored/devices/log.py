"""The placement log: one line an op, in execution order, when the user asks for it.

When it is off it must cost an op next to nothing.
"""

from mirrored._logging import logger
from mirrored.devices.checks import checked_bool
from mirrored.devices.runtime import Device

_enabled = False


def set_log_device_placement(enabled: bool) -> None:
    """Turn the placement log on or off, at any time.

    Each op then writes ``Executing op MatMul in device /job:localhost/...`` to the logger
    ``mirrored``, at level INFO, which goes to standard error by default.

    Args:
        enabled: Whether ops are logged.

    Raises:
        ValueError: ``enabled`` is not a bool.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.set_log_device_placement(True)
        >>> mr.debugging.get_log_device_placement()
        True
    """
    global _enabled
    _enabled = checked_bool(enabled, "enabled")


def get_log_device_placement() -> bool:
    """Return whether ops are logged with their device.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.get_log_device_placement()
        False
    """
    return _enabled


def log_placement(op_name: str, device: Device) -> None:
    """Write the placement log's line for an op, where the log is on.

    Example:
        >>> from mirrored import devices
        >>> devices.log_placement("MatMul", devices.get_device("CPU:0"))
    """
    if _enabled:
        logger.info("Executing op %s in device %s", op_name, device.full_name)
