"""The public names of random numbers, as ``mr.random``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import random_normal as normal
from mirrored.ops import random_uniform as uniform
from mirrored.ops import set_seed as set_seed

__all__ = [
    "normal",
    "set_seed",
    "uniform",
]

_public_module("tf.random", __name__)
