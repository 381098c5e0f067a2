"""TensorFlow 1's `tf.random`."""

import typing as _typing

from mirrored.compat.v1.calls import function_of as _function_of
from mirrored.compat.v1.draws import random_normal as normal
from mirrored.compat.v1.draws import random_uniform as uniform
from mirrored.compat.v1.draws import truncated_normal as truncated_normal
from mirrored.compat.v1.special import random_poisson as poisson
from mirrored.compat.v1.special import set_random_seed as set_random_seed

__all__ = ["normal", "poisson", "set_random_seed", "truncated_normal", "uniform"]


def __getattr__(name: str) -> _typing.Any:
    call = globals()[name] = _function_of("random", name, __name__)
    return call
