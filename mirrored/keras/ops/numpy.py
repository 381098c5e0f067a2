"""Keras' operations that NumPy has, as ``mr.keras.ops.numpy``.

An alias module without logic of its own.
"""

from mirrored._absent import part_of as _part_of

_part_of("mirrored.keras.ops", "tf.keras.ops.numpy", __name__)
