"""The memory of variables, by device, and the table of it that a notebook shows."""

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from mirrored._html import titled
from mirrored._naming import one_line, shortened
from mirrored._numbers import counted, in_units
from mirrored.devices import Device
from mirrored.devices.device_registry import memory_table
from mirrored.distribute.distributed_variables import copies_of
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.variables import DeviceVariable
from mirrored.variables.device_variable import variables_on


def megabytes(nbytes: float) -> str:
    """Return a number of bytes as megabytes, or in a smaller unit below a tenth of one.

    Example:
        >>> megabytes(3 << 19), megabytes(2048), megabytes(4)
        ('1.5 MB', '2.0 KB', '4 B')
    """
    return in_units(nbytes, ["MB", "KB"], 0.1) or f"{nbytes:.0f} B"


def bytes_by_device(variables: Iterable[Any]) -> Counter[Device]:
    """Return the bytes of the variables' copies on each device.

    Args:
        variables: The variables; the states of seed generators are on no device.
    """
    total: Counter[Device] = Counter()
    for variable in variables:
        for copy in copies_of(variable):
            if isinstance(copy, DeviceVariable):
                total[copy._device] += copy.size * copy.dtype.itemsize
    return total


_MOST = 3  # Variables of a device that are named.


def html_of(strategy: StrategyBase) -> str:
    """Return a table of a strategy's devices.

    Args:
        strategy: The strategy.
    """
    devices = list(dict.fromkeys((*strategy.devices, *strategy.variable_devices)))
    contents = [_contents(device) for device in devices]
    alike = [content == before for before, content in itertools.pairwise(["", *contents])]
    shown = [
        "as above" if same and content else content
        for same, content in zip(alike, contents, strict=True)
    ]
    table = memory_table(devices, shown)
    return titled(type(strategy).__name__, counted(strategy.num_replicas_in_sync, "replica"), table)


def _contents(device: Device) -> str:
    """Return the largest variables of a device, and the bytes of all else."""
    sizes = [
        (
            variable.size * variable.dtype.itemsize,
            variable.name.removesuffix(":0").partition("/replica_")[0],
        )
        for variable in variables_on(device)
    ]
    sizes.sort(key=lambda item: (-item[0], item[1]))
    names = shortened(one_line(name) for _, name in sizes[:_MOST])
    lines = [f"{name} {megabytes(size)}" for name, (size, _) in zip(names, sizes, strict=False)]
    rest, more = sizes[_MOST:], sum(nbytes for nbytes, _ in sizes[_MOST:])
    others = device.pool.current - sum(nbytes for nbytes, _ in sizes)
    if rest:
        lines.append(f"{counted(len(rest), 'other variable')} {megabytes(more)}")
    if others >= 1024:
        lines.append(f"tensors and other arrays {megabytes(others)}")
    return "\n".join(lines)
