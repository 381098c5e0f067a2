"""Keras' names of layers, as ``mr.keras.layers``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.layers import Dense as Dense
from mirrored.layers import Dropout as Dropout
from mirrored.layers import Input as Input
from mirrored.layers import InputLayer as InputLayer
from mirrored.layers import Layer as Layer

if _typing.TYPE_CHECKING:
    from mirrored.layers import Activation as Activation
    from mirrored.layers import Flatten as Flatten

_LATE = {
    "mirrored.layers": "Activation Flatten",
}
_public_module("tf.keras.layers", __name__, _LATE)
