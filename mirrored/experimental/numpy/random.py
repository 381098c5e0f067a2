"""NumPy's older functions of random numbers, as ``mr.experimental.numpy.random``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.numpy_functions.random_numbers import rand as rand
from mirrored.numpy_functions.random_numbers import randint as randint
from mirrored.numpy_functions.random_numbers import randn as randn
from mirrored.numpy_functions.random_numbers import random as random
from mirrored.numpy_functions.random_numbers import seed as seed
from mirrored.numpy_functions.random_numbers import standard_normal as standard_normal
from mirrored.numpy_functions.random_numbers import uniform as uniform

_public_module("tf.experimental.numpy.random", __name__)
