"""Keras' operations of neural networks, as ``mr.keras.ops.nn``.

Its names are defined in other modules.
"""

from mirrored._absent import part_of as _part_of

_part_of("mirrored.keras.ops", "tf.keras.ops.nn", __name__)
