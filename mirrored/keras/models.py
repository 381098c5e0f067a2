"""Keras' names of models, as ``mr.keras.models``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential

__all__ = [
    "Model",
    "Sequential",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.keras.models")
