"""TensorFlow 1's `tf.math`."""

import typing as _typing

from mirrored.compat.v1.calls import function_of as _function_of
from mirrored.compat.v1.special import in_top_k as in_top_k


def __getattr__(name: str) -> _typing.Any:
    call = globals()[name] = _function_of("math", name, __name__)
    return call
