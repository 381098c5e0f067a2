# Written by tests/support/stubs.py from the table in regularizers.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.layers.regularizers import L1 as L1
from mirrored.layers.regularizers import L1L2 as L1L2
from mirrored.layers.regularizers import L2 as L2
from mirrored.layers.regularizers import OrthogonalRegularizer as OrthogonalRegularizer
from mirrored.layers.regularizers import Regularizer as Regularizer
from mirrored.layers.regularizers import deserialize as deserialize
from mirrored.layers.regularizers import get as get
from mirrored.layers.regularizers import L1 as _L1
l1 = _L1
from mirrored.layers.regularizers import L1L2 as _L1L2
l1_l2 = _L1L2
from mirrored.layers.regularizers import L2 as _L2
l2 = _L2
from mirrored.layers.regularizers import OrthogonalRegularizer as _OrthogonalRegularizer
orthogonal_regularizer = _OrthogonalRegularizer
from mirrored.layers.regularizers import serialize as serialize
