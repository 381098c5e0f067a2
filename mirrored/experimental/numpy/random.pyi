# Written by tests/support/stubs.py from the table in random.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.numpy_functions.legacy_random import rand as rand
from mirrored.numpy_functions.legacy_random import randint as randint
from mirrored.numpy_functions.legacy_random import randn as randn
from mirrored.numpy_functions.legacy_random import random as random
from mirrored.numpy_functions.legacy_random import seed as seed
from mirrored.numpy_functions.legacy_random import standard_normal as standard_normal
from mirrored.numpy_functions.legacy_random import uniform as uniform
