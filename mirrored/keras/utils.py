"""The helpers that Keras keeps in its utilities, as ``mr.keras.utils``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers import reset_names as _reset_names
from mirrored.training.utilities import set_random_seed as set_random_seed
from mirrored.training.utilities import to_categorical as to_categorical

clear_session = _reset_names

_public_module("tf.keras.utils", __name__)
