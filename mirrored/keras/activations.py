"""Keras' names of activations, as ``mr.keras.activations``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.activations import get as get
from mirrored.layers.activations import linear as linear
from mirrored.layers.activations import relu as relu
from mirrored.layers.activations import sigmoid as sigmoid
from mirrored.layers.activations import softmax as softmax
from mirrored.layers.activations import tanh as tanh

_public_module("tf.keras.activations", __name__)
