"""The public names of random numbers, as ``mr.random``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import random_normal as _random_normal
from mirrored.ops import random_uniform as _random_uniform
from mirrored.ops import set_seed as set_seed

normal = _random_normal
uniform = _random_uniform

_public_module("tf.random", __name__)
