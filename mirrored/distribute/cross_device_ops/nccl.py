"""All-reduces by NCCL, NVIDIA's library for the links between its GPUs, and why there are none.

This version cannot do it yet, so each use is refused early.
"""

from collections.abc import Sequence
from typing import NoReturn

from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.all_reduce import AllReduceCrossDeviceOps
from mirrored.errors import InvalidArgumentError


class NcclAllReduce(AllReduceCrossDeviceOps):
    """All-reduces by NCCL, which this version cannot do yet.

    It can be made, so that a script can name it; a strategy that is given it is refused, and so
    is what it is asked to reduce, with the reason.

    Args:
        num_packs: How many packs the tensors of each dtype are cut into; 0: no packing.

    Raises:
        ValueError: `num_packs` is negative or not a whole number.

    Example:
        >>> import mirrored as mr
        >>> collective = mr.distribute.NcclAllReduce(num_packs=2)
        >>> collective.reduce("sum", [mr.constant(1.0)], "CPU:0")
        Traceback (most recent call last):
            ...
        mirrored.errors.InvalidArgumentError: NcclAllReduce sums between real GPUs, ...
    """

    algorithm = "nccl"
    title = "NCCL all-reduce"

    def check_devices(self, devices: Sequence[Device]) -> NoReturn:
        """Raise InvalidArgumentError with the reason why NCCL does not connect the devices."""
        raise InvalidArgumentError(
            "NcclAllReduce sums between real GPUs, which this version of mirrored cannot do yet. "
            f"{why_no_nccl(devices)}. Received: devices "
            f"{tuple(device.full_name for device in devices)}. Leave `cross_device_ops` out, or "
            "give ReductionToOneDevice() or HierarchicalCopyAllReduce()."
        )


def why_no_nccl(devices: Sequence[Device]) -> str:
    """Return why NCCL cannot sum between these devices: there is always a reason yet.

    Args:
        devices: The replicas' devices.
    """
    if any(device.type != "GPU" for device in devices):
        return "There are non-GPU devices in `mr.distribute.Strategy`"
    if any(device.simulated for device in devices):
        return "The GPUs in `mr.distribute.Strategy` are simulated in host memory"
    return "NCCL is not used by this version of mirrored yet"
