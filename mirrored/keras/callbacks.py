"""Keras' names of callbacks, as ``mr.keras.callbacks``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.training.callbacks import Callback as Callback
from mirrored.training.callbacks import CallbackList as CallbackList
from mirrored.training.callbacks import History as History

__all__ = [
    "Callback",
    "CallbackList",
    "History",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.keras.callbacks")
