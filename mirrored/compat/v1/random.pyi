# Written by tests/support/stubs.py from the table in random.py; do not edit it.
from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names
from mirrored.compat.v1.drawn_calls import multinomial as _multinomial
categorical = _multinomial
from mirrored.compat.v1.drawn_calls import random_gamma as _random_gamma
gamma = _random_gamma
from mirrored.compat.v1.graph_draws import random_normal as _random_normal
normal = _random_normal
from mirrored.compat.v1.special import random_poisson as _random_poisson
poisson = _random_poisson
from mirrored.compat.v1.special import set_random_seed as set_random_seed
from mirrored.compat.v1.drawn_calls import random_shuffle as _random_shuffle
shuffle = _random_shuffle
from mirrored.compat.v1.drawn_calls import split as split
from mirrored.compat.v1.graph_draws import truncated_normal as truncated_normal
from mirrored.compat.v1.graph_draws import random_uniform as _random_uniform
uniform = _random_uniform
