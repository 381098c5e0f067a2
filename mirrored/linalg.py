"""The public names of linear algebra, as ``mr.linalg``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.ops import global_norm as global_norm
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import matmul as matmul

if _typing.TYPE_CHECKING:
    from mirrored.ops import adjoint as adjoint
    from mirrored.ops import band_part as band_part
    from mirrored.ops import cholesky as cholesky
    from mirrored.ops import cholesky_solve as cholesky_solve
    from mirrored.ops import cross as cross
    from mirrored.ops import det as det
    from mirrored.ops import diag as diag
    from mirrored.ops import diag_part as diag_part
    from mirrored.ops import eigh as eigh
    from mirrored.ops import eigvalsh as eigvalsh
    from mirrored.ops import einsum as einsum
    from mirrored.ops import eye as eye
    from mirrored.ops import inv as inv
    from mirrored.ops import logdet as logdet
    from mirrored.ops import lstsq as lstsq
    from mirrored.ops import matrix_rank as matrix_rank
    from mirrored.ops import matrix_transpose as matrix_transpose
    from mirrored.ops import matvec as matvec
    from mirrored.ops import norm as norm
    from mirrored.ops import normalize as normalize
    from mirrored.ops import pinv as pinv
    from mirrored.ops import qr as qr
    from mirrored.ops import set_diag as set_diag
    from mirrored.ops import slogdet as slogdet
    from mirrored.ops import solve as solve
    from mirrored.ops import svd as svd
    from mirrored.ops import tensor_diag as tensor_diag
    from mirrored.ops import tensor_diag_part as tensor_diag_part
    from mirrored.ops import tensordot as tensordot
    from mirrored.ops import trace as trace
    from mirrored.ops import triangular_solve as triangular_solve

_LATE = {
    "mirrored.ops": (
        "adjoint band_part cholesky cholesky_solve cross det diag diag_part eigh eigvalsh einsum "
        "eye inv logdet lstsq matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag "
        "slogdet solve svd tensor_diag tensor_diag_part tensordot trace triangular_solve"
    ),
}
_public_module("tf.linalg", __name__, _LATE)
