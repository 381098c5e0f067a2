"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops import adjoint as adjoint
from mirrored.ops import band_part as band_part
from mirrored.ops import cross as cross
from mirrored.ops import diag as diag
from mirrored.ops import diag_part as diag_part
from mirrored.ops import einsum as einsum
from mirrored.ops import eye as eye
from mirrored.ops import global_norm as global_norm
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import matmul as matmul
from mirrored.ops import matrix_transpose as matrix_transpose
from mirrored.ops import matvec as matvec
from mirrored.ops import norm as norm
from mirrored.ops import normalize as normalize
from mirrored.ops import set_diag as set_diag
from mirrored.ops import tensor_diag as tensor_diag
from mirrored.ops import tensor_diag_part as tensor_diag_part
from mirrored.ops import tensordot as tensordot
from mirrored.ops import trace as trace

_public_module("tf.linalg", __name__)
