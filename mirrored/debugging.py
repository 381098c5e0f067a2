"""The names that TensorFlow keeps under ``tf.debugging``.

Scripts find them in the same place; what they do is in ``mirrored.devices``.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.devices import get_log_device_placement as get_log_device_placement
from mirrored.devices import set_log_device_placement as set_log_device_placement

__all__ = [
    "get_log_device_placement",
    "set_log_device_placement",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.debugging")
