"""Which collectives a strategy uses where its user names none.

The log says which they are and why, since it decides how fast gradients are summed.
"""

from collections.abc import Sequence

from mirrored._logging import logger
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.base import CrossDeviceOps
from mirrored.distribute.cross_device_ops.nccl import why_no_nccl
from mirrored.distribute.cross_device_ops.reduction import ReductionToOneDevice


def choose_cross_device_ops(devices: Sequence[Device]) -> CrossDeviceOps:
    """Return the collectives to use between some devices, and log which they are and why.

    Args:
        devices: The replicas' devices.

    Example:
        >>> from mirrored import devices
        >>> type(choose_cross_device_ops([devices.get_device("CPU:0")])).__name__
        'ReductionToOneDevice'
    """
    logger.info(
        "%s, not using nccl allreduce: values are reduced by ReductionToOneDevice.",
        why_no_nccl(devices),
    )
    return ReductionToOneDevice()
