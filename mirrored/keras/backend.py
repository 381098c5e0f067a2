"""The settings that Keras keeps in its backend, as ``mr.keras.backend``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.layers import reset_names as clear_session
from mirrored.ops import floatx as floatx
from mirrored.ops import set_floatx as set_floatx

__all__ = [
    "clear_session",
    "floatx",
    "set_floatx",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.keras.backend")
