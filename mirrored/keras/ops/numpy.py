"""Keras' operations that NumPy has, as ``mr.keras.ops.numpy``.

Its names are defined in other modules.
"""

from mirrored._absent import part_of as _part_of

_part_of("mirrored.keras.ops", "tf.keras.ops.numpy", __name__)
