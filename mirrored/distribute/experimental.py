"""The names that TensorFlow keeps under ``tf.distribute.experimental``.

Scripts find them in the same place; what they do is in the collectives' package, and in that of
strategies.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.distribute.experimental",
    __name__,
    {
        "mirrored.distribute.central_storage_strategy": "CentralStorageStrategy",
        "mirrored.distribute.cross_device_ops": "CommunicationImplementation CommunicationOptions",
        "mirrored.distribute.older_multi_worker_strategy": "MultiWorkerMirroredStrategy",
    },
)
