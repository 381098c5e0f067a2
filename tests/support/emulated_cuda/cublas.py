"""cuBLAS over the emulated cards: products of column-major matrices, by NumPy.

They are asked for as with the real library, and run late, as all work of a stream does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulated_cuda import bfloat16
from emulated_cuda.foreign import Library
from emulated_cuda.handles import Handle, Handles, addresses, factor
from emulated_cuda.machine import Machine

_OK, _NOT_INITIALIZED, _ALLOC_FAILED, _INVALID_VALUE = 0, 1, 3, 7
_EXECUTION_FAILED, _INTERNAL_ERROR, _NOT_SUPPORTED = 13, 14, 15
_VERSION = 120900
KINDS = {"S": 0, "D": 1}  # cudaDataType_t of float and double.
_R_32F, _R_64F, _R_16F, _R_16BF = 0, 1, 2, 14
_STORED: dict[int, np.dtype[Any]] = {
    _R_32F: np.dtype("f4"),
    _R_64F: np.dtype("f8"),
    _R_16F: np.dtype("f2"),
    _R_16BF: np.dtype("u2"),
}
_COMPUTE_32F, _PEDANTIC_32F, _COMPUTE_64F, _PEDANTIC_64F, _TF32 = 68, 69, 70, 71, 77
_SINGLE = {(each, of_c) for each in (_R_32F, _R_16F, _R_16BF) for of_c in (each, _R_32F)}
# The types of A and B, and of C, that a way of computing can do.
_SUPPORTED = {
    _COMPUTE_32F: _SINGLE,
    _PEDANTIC_32F: _SINGLE,
    _TF32: {(_R_32F, _R_32F)},
    _COMPUTE_64F: {(_R_64F, _R_64F)},
    _PEDANTIC_64F: {(_R_64F, _R_64F)},
}
_NARROW = {_R_16F, _R_16BF}
_SUMS_IN_FULL = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, a bit of the math mode.
_ALIGNED = 256  # What a workspace has to be aligned to, in bytes.


class Matrix(NamedTuple):
    """A column-major matrix in memory, or several, with steps in elements."""

    address: int
    kind: int
    rows: int
    columns: int
    step: int
    batch: int = 1
    batch_step: int = 0

    @property
    def nbytes(self) -> int:
        """From the first element to the last one."""
        last = (self.columns - 1) * self.step + self.rows - 1 + (self.batch - 1) * self.batch_step
        return (last + 1) * _STORED[self.kind].itemsize

    def view(self) -> NDArray[Any]:
        """Return it as an array of shape (batch, rows, columns)."""
        stored = _STORED[self.kind]
        memory: Any = (ctypes.c_char * self.nbytes).from_address(self.address)
        steps = (self.batch_step, 1, self.step)
        return np.ndarray(
            (self.batch, self.rows, self.columns),
            stored,
            memory,
            strides=tuple(step * stored.itemsize for step in steps),
        )

    def read(self) -> NDArray[Any]:
        """Return its numbers."""
        array = self.view()
        if self.kind == _R_16F:
            return array.astype(np.float32)
        return bfloat16.widened(array) if self.kind == _R_16BF else array

    def write(self, numbers: NDArray[Any]) -> None:
        """Write numbers, rounded to the nearest."""
        with np.errstate(over="ignore"):  # Of halves.
            self.view()[...] = bfloat16.rounded(numbers) if self.kind == _R_16BF else numbers


def _to_tf32(numbers: NDArray[Any]) -> NDArray[Any]:
    """Round to 10 bits behind the point, as tensor cores do."""
    bits = np.array(numbers, np.float32, order="C").view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32)


@dataclass
class _Product:
    """C = alpha op(A) op(B) + beta C."""

    a: Matrix
    b: Matrix
    c: Matrix
    transpose: tuple[bool, bool]
    alpha: float
    beta: float
    compute: int
    mode: int

    def run(self) -> None:
        a, b = self.a.read(), self.b.read()
        if self.compute == _TF32:
            a, b = _to_tf32(a), _to_tf32(b)
        a = a.swapaxes(1, 2) if self.transpose[0] else a
        b = b.swapaxes(1, 2) if self.transpose[1] else b
        with np.errstate(all="ignore"):
            product = self._multiplied(a, b)
            if self.alpha != 1:
                product = (self.alpha * product).astype(product.dtype)
            if self.beta:  # With 0 what is there may be NaN.
                product = product + (self.beta * self.c.read()).astype(product.dtype)
        self.c.write(product)

    def _multiplied(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return a @ b, for results of 16 bits by two halves that are rounded, if that may be."""
        if self.c.kind not in _NARROW or self.mode & _SUMS_IN_FULL:
            product: NDArray[Any] = a @ b
            return product
        middle = a.shape[2] // 2
        parts = a[:, :, :middle] @ b[:, :middle], a[:, :, middle:] @ b[:, middle:]
        first, second = (_rounded(part, self.c.kind) for part in parts)
        return first + second


def _rounded(numbers: NDArray[Any], kind: int) -> NDArray[Any]:
    if kind == _R_16F:
        return numbers.astype(np.float16).astype(np.float32)
    return bfloat16.widened(bfloat16.rounded(numbers))


class _Cublas(Handles):
    """The library's state."""

    name = "cublas"
    alloc_failed, invalid_value = _ALLOC_FAILED, _INVALID_VALUE
    execution_failed, internal_error = _EXECUTION_FAILED, _INTERNAL_ERROR
    version_number = _VERSION

    def set_workspace(self, handle: int | None, address: int | None, nbytes: int) -> int:
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        if not address or address % _ALIGNED:
            return _INVALID_VALUE
        state.workspace = address, nbytes
        self.inside(state.card, address, nbytes)
        return _OK

    def set_math_mode(self, handle: int | None, mode: int) -> int:
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        state.mode = mode
        return _OK

    def gemm(self, handle: int | None, *args: Any) -> int:
        """The product of two matrices: a batch of one."""
        (ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, algo) = args
        return self.batched(
            handle, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1,
            compute, algo,
        )  # fmt: skip

    def batched(self, handle: int | None, *args: Any) -> int:
        """The products of as many pairs of matrices."""
        (ta, tb, m, n, k, alpha, a, at, lda, sa, b, bt, ldb, sb, beta, c, ct, ldc, sc, batch,
         compute, _) = args  # fmt: skip
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        if ta not in (0, 1, 2) or tb not in (0, 1, 2) or min(m, n, k, batch) < 0:
            return _INVALID_VALUE
        if at != bt or (at, ct) not in _SUPPORTED.get(compute, ()):
            return _NOT_SUPPORTED
        shape_a, shape_b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
        if lda < max(1, shape_a[0]) or ldb < max(1, shape_b[0]) or ldc < max(1, m):
            return _INVALID_VALUE
        if not alpha or not beta:
            return _INVALID_VALUE
        if not m or not n or not batch:
            return _OK
        number = ctypes.c_double if compute in (_COMPUTE_64F, _PEDANTIC_64F) else ctypes.c_float
        product = _Product(
            Matrix(a or 0, at, *shape_a, lda, batch, sa),
            Matrix(b or 0, bt, *shape_b, ldb, batch, sb),
            Matrix(c or 0, ct, m, n, ldc, batch, sc),
            (bool(ta), bool(tb)),
            number.from_address(alpha).value,
            number.from_address(beta).value,
            compute,
            state.mode,
        )
        return self._enqueue(state, product, empty=not k)

    def trsm(self, letter: str, handle: int | None, *args: Any) -> int:
        """Triangular systems, in place."""
        side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb = args
        state, size = self.state(handle), n if side else m
        if state is None:
            return _NOT_INITIALIZED
        if {side, uplo, diag} - {0, 1} or trans not in (0, 1) or min(m, n) < 0:
            return _INVALID_VALUE
        if lda < max(1, size) or ldb < max(1, m) or not alpha:
            return _INVALID_VALUE
        matrix, sides = Matrix(a or 0, KINDS[letter], size, size, lda), (b, m, n, ldb)
        right = Matrix(sides[0] or 0, KINDS[letter], *sides[1:])
        factor_of_b = _number(letter, alpha)

        def run() -> None:
            _solve_triangular(letter, matrix, right, factor_of_b, (side, uplo, trans, diag))

        used = [(part.address, part.nbytes) for part in (matrix, right)]
        return self.launch(state, f"cublas{letter}trsm", used, run, state.workspace)

    def trsm_batched(self, letter: str, handle: int | None, *args: Any) -> int:
        """Triangular systems whose addresses are in the card's memory."""
        *flags, m, n, alpha, a, lda, b, ldb, count = args
        state, size = self.state(handle), n if flags[0] else m
        if state is None:
            return _NOT_INITIALIZED
        if min(m, n, count) < 0 or lda < max(1, size) or ldb < max(1, m) or not alpha:
            return _INVALID_VALUE
        factor_of_b = _number(letter, alpha)

        def run() -> None:
            for matrix, sides in zip(addresses(a, count), addresses(b, count), strict=True):
                triangle = self.in_memory(state, Matrix(matrix, KINDS[letter], size, size, lda))
                right = self.in_memory(state, Matrix(sides, KINDS[letter], m, n, ldb))
                _solve_triangular(letter, triangle, right, factor_of_b, tuple(flags))

        used = [(array, 8 * count) for array in (a, b)]
        return self.launch(state, f"cublas{letter}trsmBatched", used, run, state.workspace)

    def getrf_batched(self, letter: str, handle: int | None, *args: Any) -> int:
        """LU factors of matrices whose addresses are in the card's memory."""
        n, a, lda, pivots, info, count = args
        state = self.state(handle)
        if state is None:
            return _NOT_INITIALIZED
        if min(n, count) < 0 or lda < max(1, n):
            return _INVALID_VALUE

        def run() -> None:
            for i, matrix in enumerate(addresses(a, count)):
                square = self.in_memory(state, Matrix(matrix, KINDS[letter], n, n, lda))
                factor(letter, square, pivots + 4 * i * n, info + 4 * i)

        used = [(a, 8 * count), (pivots, 4 * count * n), (info, 4 * count)]
        return self.launch(state, f"cublas{letter}getrfBatched", used, run, state.workspace)

    def _enqueue(self, state: Handle, product: _Product, *, empty: bool) -> int:
        def run() -> None:
            if empty:
                before = product.c.read()
                product.c.write(product.beta * before if product.beta else np.zeros_like(before))
            else:
                product.run()

        used = [product.c] if empty else [product.a, product.b, product.c]
        parts = [(matrix.address, matrix.nbytes) for matrix in used]
        return self.launch(state, "cublasGemmEx", parts, run, state.workspace, "product")


def _number(letter: str, address: int) -> float:
    kind = ctypes.c_float if letter == "S" else ctypes.c_double
    return float(kind.from_address(address).value)


def _solve_triangular(
    letter: str, matrix: Matrix, right: Matrix, alpha: float, flags: tuple[int, ...]
) -> None:
    from scipy.linalg import blas

    side, uplo, trans, diag = flags
    solve = getattr(blas, f"{letter.lower()}trsm")
    (a,), (b,) = matrix.view(), right.view()
    with np.errstate(all="ignore"):
        b[...] = solve(alpha, a, b, side=side, lower=1 - uplo, trans_a=trans, diag=diag)


def emulated_cublas(machine: Machine) -> Library:
    """Return the library for a machine."""
    cublas = _Cublas(machine)
    shape = [c_int] * 5
    matrix, several = [c_void_p, c_int, c_int], [c_void_p, c_int, c_int, c_longlong]
    gemm = [c_void_p, *shape, c_void_p, *matrix, *matrix, c_void_p, *matrix, c_int, c_int]
    batched = [
        *[c_void_p, *shape, c_void_p, *several, *several, c_void_p, *several],
        *[c_int, c_int, c_int],
    ]

    functions: dict[str, tuple[list[Any], Callable[..., int]]] = {
        "cublasSetWorkspace_v2": ([c_void_p, c_void_p, c_size_t], cublas.set_workspace),
        "cublasSetMathMode": ([c_void_p, c_int], cublas.set_math_mode),
        "cublasGemmEx": (gemm, cublas.gemm),
        "cublasGemmStridedBatchedEx": (batched, cublas.batched),
    }
    flags, array = [c_int] * 4, [c_void_p, c_int]
    system = [c_void_p, *flags, c_int, c_int, c_void_p, *array, *array]
    factors = [c_void_p, c_int, *array, c_void_p, c_void_p, c_int]
    for letter in KINDS:
        functions |= {
            f"cublas{letter}trsm_v2": (system, partial(cublas.trsm, letter)),
            f"cublas{letter}trsmBatched": ([*system, c_int], partial(cublas.trsm_batched, letter)),
            f"cublas{letter}getrfBatched": (factors, partial(cublas.getrf_batched, letter)),
        }
    return cublas.library(functions)
