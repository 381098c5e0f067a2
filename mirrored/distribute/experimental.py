"""The names that TensorFlow keeps under ``tf.distribute.experimental``: the hints for collectives.

Scripts find them in the same place; what they do is in the collectives' package.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.distribute.cross_device_ops import (
    CommunicationImplementation as CommunicationImplementation,
)
from mirrored.distribute.cross_device_ops import CommunicationOptions as CommunicationOptions

__all__ = [
    "CommunicationImplementation",
    "CommunicationOptions",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.distribute.experimental")
