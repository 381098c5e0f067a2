"""Keras' names of regularizers, as ``mr.keras.regularizers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.regularizers import L1 as L1
from mirrored.layers.regularizers import L1L2 as L1L2
from mirrored.layers.regularizers import L2 as L2
from mirrored.layers.regularizers import OrthogonalRegularizer as OrthogonalRegularizer
from mirrored.layers.regularizers import Regularizer as Regularizer
from mirrored.layers.regularizers import deserialize as deserialize
from mirrored.layers.regularizers import get as get
from mirrored.layers.regularizers import serialize as serialize

l1 = L1
l1_l2 = L1L2
l2 = L2
orthogonal_regularizer = OrthogonalRegularizer

_public_module("tf.keras.regularizers", __name__)
