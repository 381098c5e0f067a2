"""The layers that models are made of, and what layers are made with.

Everything public is named here; the modules below hold one concept each.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored._naming import reset_names as reset_names
from mirrored.graph import SymbolicTensor as SymbolicTensor
from mirrored.layers import activations as activations
from mirrored.layers import initializers as initializers
from mirrored.layers import regularizers as regularizers
from mirrored.layers.dense import Dense as Dense
from mirrored.layers.dropout import Dropout as Dropout
from mirrored.layers.input import Input as Input
from mirrored.layers.input import InputLayer as InputLayer
from mirrored.layers.layer import Layer as Layer

if _typing.TYPE_CHECKING:
    from mirrored.layers.activation import Activation as Activation
    from mirrored.layers.flatten import Flatten as Flatten

__all__ = [
    "Activation",
    "Dense",
    "Dropout",
    "Flatten",
    "Input",
    "InputLayer",
    "Layer",
    "SymbolicTensor",
    "activations",
    "initializers",
    "regularizers",
    "reset_names",
]

_LATE = {
    "mirrored.layers.activation": "Activation",
    "mirrored.layers.flatten": "Flatten",
}
_public_module("tf.keras.layers", __name__, _LATE)
