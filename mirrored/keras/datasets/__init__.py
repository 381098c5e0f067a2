"""Data sets that Keras has files of, as ``mr.keras.datasets``; nothing is downloaded.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module

if _typing.TYPE_CHECKING:
    from mirrored.keras.datasets import boston_housing as boston_housing
    from mirrored.keras.datasets import california_housing as california_housing
    from mirrored.keras.datasets import fashion_mnist as fashion_mnist
    from mirrored.keras.datasets import mnist as mnist

__all__ = ["boston_housing", "california_housing", "fashion_mnist", "mnist"]

_LATE = {"mirrored.keras.datasets": "boston_housing california_housing fashion_mnist mnist"}
_public_module("tf.keras.datasets", __name__, _LATE)
