"""Keras' names of initializers, as ``mr.keras.initializers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.initializers import Constant as Constant
from mirrored.layers.initializers import Constant as constant
from mirrored.layers.initializers import GlorotNormal as GlorotNormal
from mirrored.layers.initializers import GlorotNormal as glorot_normal
from mirrored.layers.initializers import GlorotUniform as GlorotUniform
from mirrored.layers.initializers import GlorotUniform as glorot_uniform
from mirrored.layers.initializers import HeNormal as HeNormal
from mirrored.layers.initializers import HeNormal as he_normal
from mirrored.layers.initializers import HeUniform as HeUniform
from mirrored.layers.initializers import HeUniform as he_uniform
from mirrored.layers.initializers import Ones as Ones
from mirrored.layers.initializers import Ones as ones
from mirrored.layers.initializers import RandomNormal as RandomNormal
from mirrored.layers.initializers import RandomNormal as random_normal
from mirrored.layers.initializers import RandomUniform as RandomUniform
from mirrored.layers.initializers import RandomUniform as random_uniform
from mirrored.layers.initializers import TruncatedNormal as TruncatedNormal
from mirrored.layers.initializers import TruncatedNormal as truncated_normal
from mirrored.layers.initializers import VarianceScaling as VarianceScaling
from mirrored.layers.initializers import VarianceScaling as variance_scaling
from mirrored.layers.initializers import Zeros as Zeros
from mirrored.layers.initializers import Zeros as zeros
from mirrored.layers.initializers import get as get

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "ones",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
    "zeros",
]

_public_module("tf.keras.initializers", __name__)
