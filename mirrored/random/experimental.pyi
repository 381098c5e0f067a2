# Written by tests/support/stubs.py from the table in experimental.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.ops.stateless_random import Algorithm as Algorithm
from mirrored.variables.generator import Generator as Generator
from mirrored.variables.generator import create_rng_state as create_rng_state
from mirrored.variables.generator import get_global_generator as get_global_generator
from mirrored.variables.generator import set_global_generator as set_global_generator
from mirrored.ops.stateless_random import stateless_fold_in as stateless_fold_in
from mirrored.ops.stateless_random import stateless_shuffle as stateless_shuffle
from mirrored.ops.stateless_random import stateless_split as stateless_split
