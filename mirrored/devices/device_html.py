"""What a notebook shows of devices."""

from collections.abc import Sequence

from mirrored import _html
from mirrored.backends import MEGABYTE
from mirrored.devices.logical_device import Device


def memory_table(devices: Sequence[Device], contents: Sequence[str] | None = None) -> str:
    """Return a table of devices with their memory.

    Args:
        devices: The devices.
        contents: What is on each of them.
    """
    head = ("device", "memory", "in use", "limit", "what is there")[: 4 + (contents is not None)]
    rows = []
    for device, content in zip(devices, contents or [""] * len(devices), strict=True):
        pool, limit, bar = device.pool, "none", _html.Markup("")
        if pool.limit is not None:
            limit, bar = f"{pool.limit / MEGABYTE:.1f} MB", _html.bar(pool.current, pool.limit)
        used = f"{pool.current / MEGABYTE:.1f} MB"
        rows.append((f"{device.type}:{device.index}", bar, used, limit, content)[: len(head)])
    return _html.table(rows, head, right=(2, 3))
