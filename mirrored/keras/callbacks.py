"""Keras' names of callbacks, as ``mr.keras.callbacks``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.callbacks import Callback as Callback
from mirrored.training.callbacks import CallbackList as CallbackList
from mirrored.training.callbacks import History as History

_public_module("tf.keras.callbacks", __name__)
