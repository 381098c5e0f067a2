"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import eye as eye
from mirrored.ops import global_norm as global_norm
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import matmul as matmul
from mirrored.ops import norm as norm
from mirrored.ops import normalize as normalize

_public_module("tf.linalg", __name__)
