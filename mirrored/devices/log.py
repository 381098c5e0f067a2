"""The placement log: one line an op, in execution order, when the user asks for it.

When it is off it must cost an op next to nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mirrored._arguments import explained
from mirrored._logging import logger
from mirrored.devices.checks import checked_bool
from mirrored.devices.runtime import Device

_enabled = False

# From an op's name to that of its node in the function that is being recorded, where one is.
NodeNames = Callable[[str], str | None]
_names: ContextVar[NodeNames | None] = ContextVar("mirrored_node_names", default=None)


@contextmanager
def placed_as(names: NodeNames | None) -> Iterator[None]:
    """Within this context ops are placed in a function, and not executed.

    Args:
        names: From an op's name to that of its node, or to None where that was told before. Instead
            of a function None: they are executed after all.

    Example:
        >>> from mirrored import devices
        >>> with devices.placed_as(lambda op_name: f"inner/{op_name}"):
        ...     devices.log_placement("MatMul", devices.get_device("CPU:0"))
    """
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


@explained
def set_log_device_placement(enabled: bool) -> None:
    """Turn the placement log on or off, at any time.

    Each op then writes ``Executing op MatMul in device /job:localhost/...`` to the logger
    ``mirrored``, at level INFO, which goes to standard error by default. An op of a recorded
    function writes ``MatMul: (MatMul): /job:localhost/...`` once, when it is recorded, and each
    call of the function writes ``Executing op __inference_step_8 in device ...``.

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
    if not _enabled:
        return
    names = _names.get()
    if names is None:
        logger.info("Executing op %s in device %s", op_name, device.full_name)
        return
    op_name = "Const" if op_name == "_EagerConst" else op_name
    node = names(op_name)
    if node is not None:
        logger.info("%s: (%s): %s", node, op_name, device.full_name)
