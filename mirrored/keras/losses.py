"""Keras' names of losses, as ``mr.keras.losses``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.losses import *  # noqa: F403

_public_module("tf.keras.losses", __name__)
