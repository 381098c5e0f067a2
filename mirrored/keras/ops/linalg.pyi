# Written by tests/support/stubs.py from the table in linalg.py; do not edit it.
from mirrored._absent import part_of as _part_of
from mirrored.keras.ops import cholesky as cholesky
from mirrored.keras.ops import cholesky_inverse as cholesky_inverse
from mirrored.keras.ops import det as det
from mirrored.keras.ops import eigh as eigh
from mirrored.keras.ops import inv as inv
from mirrored.keras.ops import jvp as jvp
from mirrored.keras.ops import lstsq as lstsq
from mirrored.keras.ops import matrix_rank as matrix_rank
from mirrored.keras.ops import norm as norm
from mirrored.keras.ops import pinv as pinv
from mirrored.keras.ops import qr as qr
from mirrored.keras.ops import solve as solve
from mirrored.keras.ops import solve_triangular as solve_triangular
from mirrored.keras.ops import svd as svd
