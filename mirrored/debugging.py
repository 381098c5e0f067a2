"""The names that TensorFlow keeps under ``tf.debugging``.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import public_module as _public_module
from mirrored.devices import get_log_device_placement as get_log_device_placement
from mirrored.devices import set_log_device_placement as set_log_device_placement

_public_module("tf.debugging", __name__)
