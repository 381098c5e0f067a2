"""The settings that Keras keeps in its backend, as ``mr.keras.backend``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers import reset_names as _reset_names
from mirrored.ops import floatx as floatx
from mirrored.ops import set_floatx as set_floatx

clear_session = _reset_names

_public_module("tf.keras.backend", __name__)
