# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.ops.stateless_random import Algorithm as Algorithm
from mirrored.variables.generator import Generator as Generator
from mirrored.ops.random_draws import random_categorical as _random_categorical
categorical = _random_categorical
from mirrored.variables.generator import create_rng_state as create_rng_state
from mirrored.random import experimental as experimental
from mirrored.ops.stateless_random import stateless_fold_in as _stateless_fold_in
fold_in = _stateless_fold_in
from mirrored.ops.random_draws import random_gamma as _random_gamma
gamma = _random_gamma
from mirrored.variables.generator import get_global_generator as get_global_generator
from mirrored.ops import random_normal as _random_normal
normal = _random_normal
from mirrored.ops.random_draws import random_poisson as _random_poisson
poisson = _random_poisson
from mirrored.variables.generator import set_global_generator as set_global_generator
from mirrored.ops import set_seed as set_seed
from mirrored.ops.random_draws import random_shuffle as _random_shuffle
shuffle = _random_shuffle
from mirrored.ops.stateless_random import stateless_split as _stateless_split
split = _stateless_split
from mirrored.ops.stateless_random import stateless_categorical as stateless_categorical
from mirrored.ops.stateless_random import stateless_gamma as stateless_gamma
from mirrored.ops.stateless_random import stateless_normal as stateless_normal
from mirrored.ops.stateless_random import stateless_poisson as stateless_poisson
from mirrored.ops.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from mirrored.ops.stateless_random import stateless_uniform as stateless_uniform
from mirrored.ops.random_draws import random_truncated_normal as _random_truncated_normal
truncated_normal = _random_truncated_normal
from mirrored.ops import random_uniform as _random_uniform
uniform = _random_uniform
