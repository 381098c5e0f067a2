"""What a notebook shows of a strategy: its devices, their memory and what is there."""

import gc
import itertools
import re

from mirrored._html import titled
from mirrored.devices import Device
from mirrored.devices.device_html import memory_table
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.distribute.variable_memory import megabytes
from mirrored.variables import DeviceVariable

_COPY = re.compile(r"(/replica_\d+)?:0$")
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
    return titled(type(strategy).__name__, f"{strategy.num_replicas_in_sync} replicas", table)


def _contents(device: Device) -> str:
    """Return the largest variables of a device, and the bytes of all else.

    They are looked for among all objects: to note each when it is made would cost every program.
    """
    sizes = [
        (
            variable.size * variable.dtype.itemsize,
            variable.name.removesuffix(":0").partition("/replica_")[0],
        )
        for variable in gc.get_objects()
        if type(variable) is DeviceVariable and variable._device is device
    ]
    sizes.sort(key=lambda item: (-item[0], item[1]))
    lines = [f"{name} {megabytes(nbytes)}" for nbytes, name in sizes[:_MOST]]
    rest, more = sizes[_MOST:], sum(nbytes for nbytes, _ in sizes[_MOST:])
    others = device.pool.current - sum(nbytes for nbytes, _ in sizes)
    if rest:
        lines.append(f"{len(rest)} other variables {megabytes(more)}")
    if others >= 1024:
        lines.append(f"tensors and other arrays {megabytes(others)}")
    return "\n".join(lines)
