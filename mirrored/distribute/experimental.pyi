# Written by tests/support/stubs.py from the table in experimental.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.distribute.central_storage_strategy import CentralStorageStrategy as CentralStorageStrategy
from mirrored.distribute.cross_device_ops import CommunicationImplementation as CommunicationImplementation
from mirrored.distribute.cross_device_ops import CommunicationOptions as CommunicationOptions
from mirrored.distribute.older_multi_worker_strategy import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
