"""Collectives: how values of several devices are reduced, gathered and given back to all of them.

They are one interface with a reference, `ReductionToOneDevice`, that every other is held to.
"""

import typing as _typing

from mirrored._late import late_module as _late_module
from mirrored.distribute.cross_device_ops.choice import (
    choose_cross_device_ops as choose_cross_device_ops,
)
from mirrored.distribute.cross_device_ops.interface import CrossDeviceOps as CrossDeviceOps
from mirrored.distribute.cross_device_ops.options import (
    CommunicationImplementation as CommunicationImplementation,
)
from mirrored.distribute.cross_device_ops.options import (
    CommunicationOptions as CommunicationOptions,
)
from mirrored.distribute.cross_device_ops.reduction_to_one_device import (
    ReductionToOneDevice as ReductionToOneDevice,
)

if _typing.TYPE_CHECKING:
    from mirrored.distribute.cross_device_ops.hierarchical import (
        HierarchicalCopyAllReduce as HierarchicalCopyAllReduce,
    )
    from mirrored.distribute.cross_device_ops.nccl_all_reduce import NcclAllReduce as NcclAllReduce

_LATE = {
    "mirrored.distribute.cross_device_ops.hierarchical": "HierarchicalCopyAllReduce",
    "mirrored.distribute.cross_device_ops.nccl_all_reduce": "NcclAllReduce",
}
_late_module(__name__, _LATE)
