"""Keras' names of optimizers, as ``mr.keras.optimizers``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.optim import SGD as SGD
from mirrored.optim import Adam as Adam
from mirrored.optim import Optimizer as Optimizer
from mirrored.optim import get as get

__all__ = [
    "SGD",
    "Adam",
    "Optimizer",
    "get",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.keras.optimizers")
