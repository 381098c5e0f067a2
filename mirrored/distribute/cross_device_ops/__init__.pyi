# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.distribute.cross_device_ops.options import CommunicationImplementation as CommunicationImplementation
from mirrored.distribute.cross_device_ops.options import CommunicationOptions as CommunicationOptions
from mirrored.distribute.cross_device_ops.collectives import CrossDeviceOps as CrossDeviceOps
from mirrored.distribute.cross_device_ops.hierarchical import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from mirrored.distribute.cross_device_ops.nccl_all_reduce import NcclAllReduce as NcclAllReduce
from mirrored.distribute.cross_device_ops.reduction_to_one_device import ReductionToOneDevice as ReductionToOneDevice
from mirrored.distribute.cross_device_ops.choice import choose_cross_device_ops as choose_cross_device_ops
