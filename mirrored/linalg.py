"""The public names of linear algebra, as ``mr.linalg``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.linalg",
    __name__,
    {
        "mirrored.ops": """
            adjoint band_part cholesky cholesky_solve cross det diag diag_part eigh
            eigvalsh einsum eye global_norm inv l2_normalize logdet lstsq matmul
            matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag slogdet
            solve svd tensor_diag tensor_diag_part tensordot trace triangular_solve
        """,
    },
)
