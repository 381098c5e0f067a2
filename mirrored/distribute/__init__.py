"""Training on several devices: strategies, contexts of replicas, per-replica values, collectives.

What is public of it is `mirrored.distribute`, as in TensorFlow.
"""

from mirrored.distribute.context import ReplicaContext as ReplicaContext
from mirrored.distribute.context import get_replica_context as get_replica_context
from mirrored.distribute.context import get_strategy as get_strategy
from mirrored.distribute.context import has_strategy as has_strategy
from mirrored.distribute.context import in_cross_replica_context as in_cross_replica_context
from mirrored.distribute.cross_device_ops import CrossDeviceOps as CrossDeviceOps
from mirrored.distribute.cross_device_ops import ReductionToOneDevice as ReductionToOneDevice
from mirrored.distribute.mirrored_strategy import MirroredStrategy as MirroredStrategy
from mirrored.distribute.reduce_op import ReduceOp as ReduceOp
from mirrored.distribute.sharding import shard_bounds as shard_bounds
from mirrored.distribute.sharding import split_sizes as split_sizes
from mirrored.distribute.strategy import Strategy as Strategy
from mirrored.distribute.values import MirroredVariable as MirroredVariable
from mirrored.distribute.values import PerReplica as PerReplica
