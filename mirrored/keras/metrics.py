"""Keras' names of metrics, as ``mr.keras.metrics``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.metrics import *  # noqa: F403

_public_module("tf.keras.metrics", __name__)
