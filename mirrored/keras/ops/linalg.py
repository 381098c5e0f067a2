"""Keras' operations of linear algebra, as ``mr.keras.ops.linalg``.

An alias module without logic of its own.
"""

from mirrored._absent import part_of as _part_of

_part_of("mirrored.keras.ops", "tf.keras.ops.linalg", __name__)
