# Written by tests/support/stubs.py from the table in random.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.variables.generator import SeedGenerator as SeedGenerator
from mirrored.keras_functions.random import categorical as categorical
from mirrored.keras_functions.random import dropout as dropout
from mirrored.keras_functions.random import normal as normal
from mirrored.keras_functions.random import randint as randint
from mirrored.keras_functions.random import truncated_normal as truncated_normal
from mirrored.keras_functions.random import uniform as uniform
