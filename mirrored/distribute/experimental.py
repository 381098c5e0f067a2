"""The names that TensorFlow keeps under ``tf.distribute.experimental``.

Scripts find them in the same place; what they do is in the collectives' package, and in that of
strategies.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.distribute.cross_device_ops import (
    CommunicationImplementation as CommunicationImplementation,
)
from mirrored.distribute.cross_device_ops import CommunicationOptions as CommunicationOptions

if _typing.TYPE_CHECKING:
    from mirrored.distribute.central_storage_strategy import (
        CentralStorageStrategy as CentralStorageStrategy,
    )
    from mirrored.distribute.older_multi_worker_strategy import (
        MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )

_LATE = {
    "mirrored.distribute.central_storage_strategy": "CentralStorageStrategy",
    "mirrored.distribute.older_multi_worker_strategy": "MultiWorkerMirroredStrategy",
}
_public_module("tf.distribute.experimental", __name__, _LATE)
