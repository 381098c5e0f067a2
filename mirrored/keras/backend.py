"""The settings that Keras keeps in its backend, as ``mr.keras.backend``.

An alias module without logic of its own.
"""

from mirrored.ops import floatx as floatx
from mirrored.ops import set_floatx as set_floatx
