# Written by tests/support/stubs.py from the table in linalg.py; do not edit it.
from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names
import typing as _typing
adjoint: _typing.Any
from mirrored.compat.v1.drawn_calls import matrix_band_part as _matrix_band_part
band_part = _matrix_band_part
from mirrored.compat.v1.drawn_calls import cholesky as cholesky
from mirrored.compat.v1.drawn_calls import cholesky_solve as cholesky_solve
from mirrored.compat.v1.drawn_calls import cross as cross
from mirrored.compat.v1.drawn_calls import matrix_determinant as _matrix_determinant
det = _matrix_determinant
from mirrored.compat.v1.drawn_calls import diag as diag
from mirrored.compat.v1.drawn_calls import diag_part as diag_part
from mirrored.compat.v1.drawn_calls import self_adjoint_eig as _self_adjoint_eig
eigh = _self_adjoint_eig
eigvalsh: _typing.Any
from mirrored.compat.v1.drawn_calls import einsum as einsum
from mirrored.compat.v1.drawn_calls import eye as eye
from mirrored.compat.v1.drawn_calls import global_norm as global_norm
from mirrored.compat.v1.drawn_calls import matrix_inverse as _matrix_inverse
inv = _matrix_inverse
l2_normalize: _typing.Any
logdet: _typing.Any
lstsq: _typing.Any
from mirrored.compat.v1.drawn_calls import matmul as matmul
matrix_rank: _typing.Any
from mirrored.compat.v1.drawn_calls import matrix_transpose as matrix_transpose
matvec: _typing.Any
from mirrored.compat.v1.drawn_calls import norm as norm
normalize: _typing.Any
pinv: _typing.Any
from mirrored.compat.v1.drawn_calls import qr as qr
from mirrored.compat.v1.drawn_calls import matrix_set_diag as _matrix_set_diag
set_diag = _matrix_set_diag
slogdet: _typing.Any
from mirrored.compat.v1.drawn_calls import matrix_solve as _matrix_solve
solve = _matrix_solve
from mirrored.compat.v1.drawn_calls import svd as svd
from mirrored.compat.v1.drawn_calls import diag as _diag
tensor_diag = _diag
from mirrored.compat.v1.drawn_calls import diag_part as _diag_part
tensor_diag_part = _diag_part
from mirrored.compat.v1.drawn_calls import tensordot as tensordot
from mirrored.compat.v1.drawn_calls import trace as trace
transpose: _typing.Any
from mirrored.compat.v1.drawn_calls import matrix_triangular_solve as _matrix_triangular_solve
triangular_solve = _matrix_triangular_solve
