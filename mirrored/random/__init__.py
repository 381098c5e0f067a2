"""The names that TensorFlow keeps under ``tf.random``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import random_normal as _random_normal
from mirrored.ops import random_uniform as _random_uniform
from mirrored.ops import set_seed as set_seed
from mirrored.ops.draw import Algorithm as Algorithm
from mirrored.ops.random_draws import random_categorical as _random_categorical
from mirrored.ops.random_draws import random_gamma as _random_gamma
from mirrored.ops.random_draws import random_poisson as _random_poisson
from mirrored.ops.random_draws import random_shuffle as _random_shuffle
from mirrored.ops.random_draws import random_truncated_normal as _random_truncated_normal
from mirrored.ops.stateless_random import stateless_categorical as stateless_categorical
from mirrored.ops.stateless_random import stateless_fold_in as _stateless_fold_in
from mirrored.ops.stateless_random import stateless_gamma as stateless_gamma
from mirrored.ops.stateless_random import stateless_normal as stateless_normal
from mirrored.ops.stateless_random import stateless_poisson as stateless_poisson
from mirrored.ops.stateless_random import stateless_split as _stateless_split
from mirrored.ops.stateless_random import stateless_truncated_normal as stateless_truncated_normal
from mirrored.ops.stateless_random import stateless_uniform as stateless_uniform
from mirrored.random import experimental as experimental
from mirrored.variables.generator import Generator as Generator
from mirrored.variables.generator import create_rng_state as create_rng_state
from mirrored.variables.generator import get_global_generator as get_global_generator
from mirrored.variables.generator import set_global_generator as set_global_generator

categorical = _random_categorical
fold_in = _stateless_fold_in
gamma = _random_gamma
normal = _random_normal
poisson = _random_poisson
shuffle = _random_shuffle
split = _stateless_split
truncated_normal = _random_truncated_normal
uniform = _random_uniform

_public_module("tf.random", __name__)
