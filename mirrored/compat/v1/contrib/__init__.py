"""The part of TensorFlow 1's `tf.contrib` that is provided: initializers of `tf.contrib.layers`."""

from typing import NoReturn

from mirrored.compat.v1.contrib import layers as layers

__all__ = ["layers"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"{__name__} has no {name!r}. TensorFlow 2 has no `tf.contrib`, and of it "
        "`tf.contrib.layers.xavier_initializer` alone is here. Use `tf.layers`, `tf.nn` and "
        "`tf.train`."
    )
