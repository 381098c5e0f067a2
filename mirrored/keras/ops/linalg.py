"""Keras' operations of linear algebra, as ``mr.keras.ops.linalg``.

Its names are defined in other modules.
"""

from mirrored._absent import part_of as _part_of

_part_of("mirrored.keras.ops", "tf.keras.ops.linalg", __name__)
