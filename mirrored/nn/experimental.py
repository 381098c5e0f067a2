"""The names that TensorFlow keeps under ``tf.nn.experimental``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import general_dropout as general_dropout
from mirrored.ops import stateless_dropout as stateless_dropout

_public_module("tf.nn.experimental", __name__)
