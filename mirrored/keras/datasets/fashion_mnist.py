"""A data set of Keras' from its files, as ``mr.keras.datasets.fashion_mnist``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.data.keras_files import load_fashion_mnist as load_data

__all__ = ["load_data"]

_public_module("tf.keras.datasets.fashion_mnist", __name__)
