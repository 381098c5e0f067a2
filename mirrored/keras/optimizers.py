"""Keras' names of optimizers, as ``mr.keras.optimizers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.optim import SGD as SGD
from mirrored.optim import Adam as Adam
from mirrored.optim import Optimizer as Optimizer
from mirrored.optim import get as get

_public_module("tf.keras.optimizers", __name__)
