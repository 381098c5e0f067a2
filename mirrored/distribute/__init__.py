"""Training on several devices: strategies, contexts of replicas, per-replica values, collectives.

What is public of it is `mirrored.distribute`, as in TensorFlow.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.distribute.context import ReplicaContext as ReplicaContext
from mirrored.distribute.context import experimental_set_strategy as experimental_set_strategy
from mirrored.distribute.context import get_replica_context as get_replica_context
from mirrored.distribute.context import has_strategy as has_strategy
from mirrored.distribute.context import in_cross_replica_context as in_cross_replica_context
from mirrored.distribute.cross_device_ops import CrossDeviceOps as CrossDeviceOps
from mirrored.distribute.cross_device_ops import ReductionToOneDevice as ReductionToOneDevice
from mirrored.distribute.cross_device_ops import (
    choose_cross_device_ops as choose_cross_device_ops,
)
from mirrored.distribute.cross_device_ops.options import ReduceOp as ReduceOp
from mirrored.distribute.distributed_variables import DistributedVariable as DistributedVariable
from mirrored.distribute.distributed_variables import MirroredVariable as MirroredVariable
from mirrored.distribute.input import DistributedDataset as DistributedDataset
from mirrored.distribute.input import DistributedIterator as DistributedIterator
from mirrored.distribute.input import InputContext as InputContext
from mirrored.distribute.input import ValueContext as ValueContext
from mirrored.distribute.mirrored_strategy import MirroredStrategy as MirroredStrategy
from mirrored.distribute.on_read_variables import SyncOnReadVariable as SyncOnReadVariable
from mirrored.distribute.one_device_strategy import DefaultStrategy as DefaultStrategy
from mirrored.distribute.one_device_strategy import OneDeviceStrategy as OneDeviceStrategy
from mirrored.distribute.sharding import shard_bounds as shard_bounds
from mirrored.distribute.sharding import split_sizes as split_sizes
from mirrored.distribute.strategy import Strategy as Strategy
from mirrored.distribute.strategy import get_strategy as get_strategy
from mirrored.distribute.values import DistributedValues as DistributedValues
from mirrored.distribute.values import Mirrored as Mirrored
from mirrored.distribute.values import PerReplica as PerReplica
from mirrored.ops import IndexedSlices as IndexedSlices

if _typing.TYPE_CHECKING:
    from mirrored.distribute import experimental as experimental
    from mirrored.distribute.cross_device_ops import (
        HierarchicalCopyAllReduce as HierarchicalCopyAllReduce,
    )
    from mirrored.distribute.cross_device_ops import NcclAllReduce as NcclAllReduce
    from mirrored.distribute.extended import StrategyExtended as StrategyExtended
    from mirrored.distribute.multi_worker_strategy import (
        MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )

__all__ = [
    "CrossDeviceOps",
    "DefaultStrategy",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "DistributedVariable",
    "HierarchicalCopyAllReduce",
    "IndexedSlices",
    "InputContext",
    "Mirrored",
    "MirroredStrategy",
    "MirroredVariable",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "PerReplica",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "Strategy",
    "StrategyExtended",
    "SyncOnReadVariable",
    "ValueContext",
    "choose_cross_device_ops",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "shard_bounds",
    "split_sizes",
]

_LATE = {
    "mirrored.distribute": "experimental",
    "mirrored.distribute.cross_device_ops": "HierarchicalCopyAllReduce NcclAllReduce",
    "mirrored.distribute.extended": "StrategyExtended",
    "mirrored.distribute.multi_worker_strategy": "MultiWorkerMirroredStrategy",
}
_public_module("tf.distribute", __name__, _LATE)
