"""Keras' operations of linear algebra, as ``mr.keras.ops.linalg``.

An alias module without logic of its own.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from mirrored._absent import part_of as _part_of

if _TYPE_CHECKING:
    from mirrored.keras.ops import *  # noqa: F403

_part_of("mirrored.keras.ops", "tf.keras.ops.linalg", __name__)
