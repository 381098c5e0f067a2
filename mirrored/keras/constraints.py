"""Keras' names of constraints, as ``mr.keras.constraints``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.constraints import Constraint as Constraint
from mirrored.layers.constraints import MaxNorm as MaxNorm
from mirrored.layers.constraints import MinMaxNorm as MinMaxNorm
from mirrored.layers.constraints import NonNeg as NonNeg
from mirrored.layers.constraints import UnitNorm as UnitNorm
from mirrored.layers.constraints import deserialize as deserialize
from mirrored.layers.constraints import get as get
from mirrored.layers.constraints import serialize as serialize

max_norm = MaxNorm
min_max_norm = MinMaxNorm
non_neg = NonNeg
unit_norm = UnitNorm

_public_module("tf.keras.constraints", __name__)
