"""The memory of variables, by device."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from mirrored.backends import MEGABYTE
from mirrored.devices import Device
from mirrored.distribute.distributed_variables import copies_of
from mirrored.variables import DeviceVariable


def megabytes(nbytes: float) -> str:
    """Return a number of bytes as megabytes, or as kilobytes below a tenth of one.

    Example:
        >>> megabytes(3 << 19), megabytes(2048)
        ('1.5 MB', '2.0 KB')
    """
    return f"{nbytes / MEGABYTE:.1f} MB" if nbytes >= MEGABYTE / 10 else f"{nbytes / 1024:.1f} KB"


def bytes_by_device(variables: Iterable[Any]) -> Counter[Device]:
    """Return the bytes of the variables' copies on each device.

    Args:
        variables: The variables; the states of seed generators are on no device.
    """
    total: Counter[Device] = Counter()
    for variable in variables:
        for copy in copies_of(variable):
            if isinstance(copy, DeviceVariable):
                total[copy._device] += math.prod(copy.shape) * copy.dtype.itemsize
    return total


def short_name(device: Device) -> str:
    """Return a name as in GPU:0."""
    return f"{device.type}:{device.index}"
