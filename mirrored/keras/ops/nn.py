"""Keras' operations of neural networks, as ``mr.keras.ops.nn``.

An alias module without logic of its own.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from mirrored._absent import part_of as _part_of

if _TYPE_CHECKING:
    from mirrored.keras.ops import *  # noqa: F403

_part_of("mirrored.keras.ops", "tf.keras.ops.nn", __name__)
