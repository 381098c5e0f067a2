"""The public names of random numbers, as ``mr.random``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.ops import random_normal as normal
from mirrored.ops import random_uniform as uniform
from mirrored.ops import set_seed as set_seed

__all__ = [
    "normal",
    "set_seed",
    "uniform",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.random")
