"""Collectives: how values of several devices are reduced, gathered and given back to all of them.

They are one interface with a reference, `ReductionToOneDevice`, that every other is held to.
"""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.distribute.cross_device_ops.choice": "choose_cross_device_ops",
        "mirrored.distribute.cross_device_ops.collectives": "CrossDeviceOps",
        "mirrored.distribute.cross_device_ops.hierarchical": "HierarchicalCopyAllReduce",
        "mirrored.distribute.cross_device_ops.nccl_all_reduce": "NcclAllReduce",
        "mirrored.distribute.cross_device_ops.options": """
            CommunicationImplementation CommunicationOptions
        """,
        "mirrored.distribute.cross_device_ops.reduction_to_one_device": "ReductionToOneDevice",
    },
)
