# Written by tests/support/stubs.py from the table in random.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.numpy_functions.random_numbers import rand as rand
from mirrored.numpy_functions.random_numbers import randint as randint
from mirrored.numpy_functions.random_numbers import randn as randn
from mirrored.numpy_functions.random_numbers import random as random
from mirrored.numpy_functions.random_numbers import seed as seed
from mirrored.numpy_functions.random_numbers import standard_normal as standard_normal
from mirrored.numpy_functions.random_numbers import uniform as uniform
