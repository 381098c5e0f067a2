"""Keras' names of regularizers, as ``mr.keras.regularizers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.regularizers import L1 as L1
from mirrored.layers.regularizers import L1 as l1
from mirrored.layers.regularizers import L1L2 as L1L2
from mirrored.layers.regularizers import L1L2 as l1_l2
from mirrored.layers.regularizers import L2 as L2
from mirrored.layers.regularizers import L2 as l2
from mirrored.layers.regularizers import get as get

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "get",
    "l1",
    "l1_l2",
    "l2",
]

_public_module("tf.keras.regularizers", __name__)
