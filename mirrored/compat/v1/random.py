"""TensorFlow 1's `tf.random`."""

import typing as _typing

from mirrored.compat.v1.calls import function_of as _function_of


def __getattr__(name: str) -> _typing.Any:
    call = globals()[name] = _function_of("random", name, __name__)
    return call
