"""Keras' names of initializers, as ``mr.keras.initializers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.initializers import Constant as Constant
from mirrored.layers.initializers import GlorotNormal as GlorotNormal
from mirrored.layers.initializers import GlorotUniform as GlorotUniform
from mirrored.layers.initializers import HeNormal as HeNormal
from mirrored.layers.initializers import HeUniform as HeUniform
from mirrored.layers.initializers import Identity as Identity
from mirrored.layers.initializers import Initializer as Initializer
from mirrored.layers.initializers import LecunNormal as LecunNormal
from mirrored.layers.initializers import LecunUniform as LecunUniform
from mirrored.layers.initializers import Ones as Ones
from mirrored.layers.initializers import Orthogonal as Orthogonal
from mirrored.layers.initializers import RandomNormal as RandomNormal
from mirrored.layers.initializers import RandomUniform as RandomUniform
from mirrored.layers.initializers import TruncatedNormal as TruncatedNormal
from mirrored.layers.initializers import VarianceScaling as VarianceScaling
from mirrored.layers.initializers import Zeros as Zeros
from mirrored.layers.initializers import deserialize as deserialize
from mirrored.layers.initializers import get as get
from mirrored.layers.initializers import serialize as serialize

IdentityInitializer = Identity
OrthogonalInitializer = Orthogonal
constant = Constant
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal
he_uniform = HeUniform
identity = Identity
lecun_normal = LecunNormal
lecun_uniform = LecunUniform
ones = Ones
orthogonal = Orthogonal
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
variance_scaling = VarianceScaling
zeros = Zeros

_public_module("tf.keras.initializers", __name__)
