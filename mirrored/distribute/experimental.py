"""The names that TensorFlow keeps under ``tf.distribute.experimental``: the hints for collectives.

Scripts find them in the same place; what they do is in the collectives' package.
"""

from mirrored._absent import public_module as _public_module
from mirrored.distribute.cross_device_ops import (
    CommunicationImplementation as CommunicationImplementation,
)
from mirrored.distribute.cross_device_ops import CommunicationOptions as CommunicationOptions

_public_module("tf.distribute.experimental", __name__)
