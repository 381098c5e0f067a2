# Written by tests/support/stubs.py from the table in constraints.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.layers.constraints import Constraint as Constraint
from mirrored.layers.constraints import MaxNorm as MaxNorm
from mirrored.layers.constraints import MinMaxNorm as MinMaxNorm
from mirrored.layers.constraints import NonNeg as NonNeg
from mirrored.layers.constraints import UnitNorm as UnitNorm
from mirrored.layers.constraints import deserialize as deserialize
from mirrored.layers.constraints import get as get
from mirrored.layers.constraints import MaxNorm as _MaxNorm
max_norm = _MaxNorm
from mirrored.layers.constraints import MinMaxNorm as _MinMaxNorm
min_max_norm = _MinMaxNorm
from mirrored.layers.constraints import NonNeg as _NonNeg
non_neg = _NonNeg
from mirrored.layers.constraints import serialize as serialize
from mirrored.layers.constraints import UnitNorm as _UnitNorm
unit_norm = _UnitNorm
