# Written by tests/support/stubs.py from the table in initializers.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.layers.initializers import Constant as Constant
from mirrored.layers.initializers import GlorotNormal as GlorotNormal
from mirrored.layers.initializers import GlorotUniform as GlorotUniform
from mirrored.layers.initializers import HeNormal as HeNormal
from mirrored.layers.initializers import HeUniform as HeUniform
from mirrored.layers.initializers import Identity as Identity
from mirrored.layers.initializers import Identity as _Identity
IdentityInitializer = _Identity
from mirrored.layers.initializers import Initializer as Initializer
from mirrored.layers.initializers import LecunNormal as LecunNormal
from mirrored.layers.initializers import LecunUniform as LecunUniform
from mirrored.layers.initializers import Ones as Ones
from mirrored.layers.initializers import Orthogonal as Orthogonal
from mirrored.layers.initializers import Orthogonal as _Orthogonal
OrthogonalInitializer = _Orthogonal
from mirrored.layers.initializers import RandomNormal as RandomNormal
from mirrored.layers.initializers import RandomUniform as RandomUniform
from mirrored.layers.initializers import TruncatedNormal as TruncatedNormal
from mirrored.layers.initializers import VarianceScaling as VarianceScaling
from mirrored.layers.initializers import Zeros as Zeros
from mirrored.layers.initializers import Constant as _Constant
constant = _Constant
from mirrored.layers.initializers import deserialize as deserialize
from mirrored.layers.initializers import get as get
from mirrored.layers.initializers import GlorotNormal as _GlorotNormal
glorot_normal = _GlorotNormal
from mirrored.layers.initializers import GlorotUniform as _GlorotUniform
glorot_uniform = _GlorotUniform
from mirrored.layers.initializers import HeNormal as _HeNormal
he_normal = _HeNormal
from mirrored.layers.initializers import HeUniform as _HeUniform
he_uniform = _HeUniform
from mirrored.layers.initializers import Identity as _Identity
identity = _Identity
from mirrored.layers.initializers import LecunNormal as _LecunNormal
lecun_normal = _LecunNormal
from mirrored.layers.initializers import LecunUniform as _LecunUniform
lecun_uniform = _LecunUniform
from mirrored.layers.initializers import Ones as _Ones
ones = _Ones
from mirrored.layers.initializers import Orthogonal as _Orthogonal
orthogonal = _Orthogonal
from mirrored.layers.initializers import RandomNormal as _RandomNormal
random_normal = _RandomNormal
from mirrored.layers.initializers import RandomUniform as _RandomUniform
random_uniform = _RandomUniform
from mirrored.layers.initializers import serialize as serialize
from mirrored.layers.initializers import TruncatedNormal as _TruncatedNormal
truncated_normal = _TruncatedNormal
from mirrored.layers.initializers import VarianceScaling as _VarianceScaling
variance_scaling = _VarianceScaling
from mirrored.layers.initializers import Zeros as _Zeros
zeros = _Zeros
