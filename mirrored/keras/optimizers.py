"""Keras' names of optimizers, as ``mr.keras.optimizers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.optim import *  # noqa: F403

_public_module("tf.keras.optimizers", __name__)
