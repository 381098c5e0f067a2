"""Keras' names of models, as ``mr.keras.models``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential

_public_module("tf.keras.models", __name__)
