"""Keras' random numbers by seeds of their own, as ``mr.keras.random``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.keras_functions.random_numbers import categorical as categorical
from mirrored.keras_functions.random_numbers import dropout as dropout
from mirrored.keras_functions.random_numbers import normal as normal
from mirrored.keras_functions.random_numbers import randint as randint
from mirrored.keras_functions.random_numbers import truncated_normal as truncated_normal
from mirrored.keras_functions.random_numbers import uniform as uniform
from mirrored.variables.seed_generator import SeedGenerator as SeedGenerator

_public_module("tf.keras.random", __name__)
