"""Keras' names of activations, as ``mr.keras.activations``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.layers.activations import get as get
from mirrored.layers.activations import linear as linear
from mirrored.layers.activations import relu as relu
from mirrored.layers.activations import sigmoid as sigmoid
from mirrored.layers.activations import softmax as softmax
from mirrored.layers.activations import tanh as tanh

__all__ = [
    "get",
    "linear",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.keras.activations")
