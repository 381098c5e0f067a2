"""Training on several devices: strategies, contexts of replicas, per-replica values, collectives.

What is public of it is `mirrored.distribute`, as in TensorFlow.
"""

from mirrored._absent import public_module as _public_module
from mirrored.distribute import one_device_strategy as _default  # noqa: F401  Without a scope.

_public_module(
    "tf.distribute",
    __name__,
    {
        "mirrored.distribute": "experimental",
        "mirrored.distribute.context": """
            ReplicaContext experimental_set_strategy get_replica_context has_strategy
            in_cross_replica_context
        """,
        "mirrored.distribute.cross_device_ops": """
            CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce ReductionToOneDevice
            choose_cross_device_ops
        """,
        "mirrored.distribute.cross_device_ops.options": "ReduceOp",
        "mirrored.distribute.distributed_variables": "DistributedVariable MirroredVariable",
        "mirrored.distribute.elastic_steps": "elastic",
        "mirrored.distribute.extended": "StrategyExtended",
        "mirrored.distribute.input": """
            DistributedDataset DistributedIterator InputContext ValueContext
        """,
        "mirrored.distribute.mirrored_strategy": "MirroredStrategy",
        "mirrored.distribute.multi_worker_strategy": "MultiWorkerMirroredStrategy",
        "mirrored.distribute.on_read_variables": "SyncOnReadVariable",
        "mirrored.distribute.one_device_strategy": "DefaultStrategy OneDeviceStrategy",
        "mirrored.distribute.per_replica": "DistributedValues Mirrored PerReplica",
        "mirrored.distribute.sharding": "shard_bounds split_sizes",
        "mirrored.distribute.strategy": "Strategy get_strategy",
        "mirrored.ops": "IndexedSlices",
    },
)
