"""Matrix products and triangular systems by cuBLAS, through ctypes.

CuPy refuses its own cuBLAS while a CUDA graph is captured; a handle of ours is captured with all
else that runs on its stream.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

from mirrored.backends import product_settings
from mirrored.backends.cuda.toolkit import LETTERS, Handle, MatrixLibrary, of_each
from mirrored.errors import InvalidArgumentError

_STATUS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}

_NOT_TRANSPOSED, _TRANSPOSED = 0, 1  # cublasOperation_t
_RIGHT = 1  # cublasSideMode_t
_LOWER, _UPPER = 0, 1  # cublasFillMode_t
_FLOAT32, _FLOAT64, _FLOAT16, _BFLOAT16 = 0, 1, 2, 14  # cudaDataType_t
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_TF32 = 68, 70, 77  # cublasComputeType_t
_DEFAULT_ALGORITHM = -1
# CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION of cublasMath_t: parts of a sum over k are added
# in what products are computed in, and not rounded to bfloat16 or float16 before.
_SUMS_IN_FULL = 16
_LARGEST_SIDE = (1 << 31) - 1
# What cuBLAS may use while it computes, in bytes: its own recommendation for Hopper cards, and for
# those before (the documentation of cublasSetWorkspace).
_WORKSPACE, _WORKSPACE_BEFORE_HOPPER = 32 << 20, 4 << 20


class _Element(NamedTuple):
    """How cuBLAS knows a dtype.

    Attributes:
        kind: Its cudaDataType_t.
        compute: What products and sums are computed in.
        one: The number 1, as cuBLAS takes the factors of a product and of what was there.
        zero: The number 0.
    """

    kind: int
    compute: int
    one: Any
    zero: Any


_ELEMENTS = {
    "float32": _Element(_FLOAT32, _COMPUTE_32F, ctypes.c_float(1), ctypes.c_float(0)),
    "float64": _Element(_FLOAT64, _COMPUTE_64F, ctypes.c_double(1), ctypes.c_double(0)),
    "float16": _Element(_FLOAT16, _COMPUTE_32F, ctypes.c_float(1), ctypes.c_float(0)),
    "bfloat16": _Element(_BFLOAT16, _COMPUTE_32F, ctypes.c_float(1), ctypes.c_float(0)),
}


_LIBRARY = MatrixLibrary("cuBLAS", "cublas", 0, "cublas", "_v2", _STATUS)
load, version = _LIBRARY.load, _LIBRARY.version


def workspace_bytes(compute_capability: tuple[int, int]) -> int:
    """Return how large a workspace is to be, for a card of this compute capability."""
    return _WORKSPACE if compute_capability >= (9, 0) else _WORKSPACE_BEFORE_HOPPER


class Blas(Handle):
    """Products and triangular systems on one stream: a handle of cuBLAS with its own workspace.

    With its own workspace on its one stream, the same products give the same bits.

    Args:
        library: What ``load`` returned.
        stream: The address of the stream; the card that it is on must be the current one.
        workspace: An array of the card's memory, aligned to 256 bytes, which nothing else uses.

    Raises:
        ResourceExhaustedError: The card has too little memory for what cuBLAS keeps.
        RuntimeError: cuBLAS cannot be started.
    """

    kind = _LIBRARY

    def __init__(self, library: Any, stream: int, workspace: Any) -> None:
        self._workspace = workspace  # cuBLAS keeps its address alone.
        super().__init__(library, stream)
        try:
            self._call("SetMathMode", self._handle, ctypes.c_int(_SUMS_IN_FULL))
            # After the stream: setting that gives the handle its default workspace again.
            self._call(
                "SetWorkspace_v2",
                self._handle,
                ctypes.c_void_p(workspace.data.ptr),
                ctypes.c_size_t(workspace.nbytes),
            )
        except BaseException:
            self.close()
            raise

    def matmul(self, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
        """Launch a product of matrices, or of equally many, on the handle's stream.

        float32 products are made in TensorFloat-32 where that is enabled, those of float16 and
        bfloat16 summed in float32, and those of float64 in it.

        Args:
            out: The result, of shape (n, m) or (batch, n, m), C-contiguous and not empty. It is of
                the factors' dtype, or float32 where theirs is narrower: sums are not rounded then.
            a: Shape (n, k) or (batch, n, k), with `transpose_a` the last two swapped; k at least 1.
                A batch of 1 is used for all.
            b: Shape (k, m), likewise.
            transpose_a: Whether to transpose the matrices of `a`.
            transpose_b: The same for `b`.

        Raises:
            InvalidArgumentError: The dtype is none of these, or a side is 2**31 or longer; nothing
                is launched.
            RuntimeError: cuBLAS refused the product.
        """
        element, result_kind = _element(a.dtype), _element(out.dtype).kind
        rows, columns = out.shape[-2:]
        inner = a.shape[-2 if transpose_a else -1]
        if max(inner, *out.shape) > _LARGEST_SIDE:
            raise InvalidArgumentError(
                "A matrix product's sides must be below 2**31. Received: "
                f"{a.shape} and {b.shape}. Cut the arrays into smaller ones."
            )
        integer, pointer = ctypes.c_int, ctypes.c_void_p
        # cuBLAS stores matrices by columns: there, an array of ours is the transposed matrix. What
        # is computed is therefore the product's transpose, from b's and a's, in this order.
        shared = (
            self._handle,
            integer(_TRANSPOSED if transpose_b else _NOT_TRANSPOSED),
            integer(_TRANSPOSED if transpose_a else _NOT_TRANSPOSED),
            *(integer(columns), integer(rows), integer(inner)),
            ctypes.byref(element.one),
        )
        operands = [
            (pointer(array.data.ptr), integer(kind), integer(array.shape[-1]))
            for array, kind in ((b, element.kind), (a, element.kind), (out, result_kind))
        ]
        how = integer(_computed_in(element)), integer(_DEFAULT_ALGORITHM)
        zero = ctypes.byref(element.zero)
        if out.ndim == 2:
            of_b, of_a, result = operands
            return self._call("GemmEx", *shared, *of_b, *of_a, zero, *result, *how)
        steps = [ctypes.c_longlong(_step(array)) for array in (b, a, out)]
        (of_b, of_a, result), (step_b, step_a, step) = operands, steps
        matrices = *of_b, step_b, *of_a, step_a, zero, *result, step, integer(len(out))
        return self._call("GemmStridedBatchedEx", *shared, *matrices, *how)

    def solve_triangular(
        self,
        out: Any,
        matrices: Any,
        addresses: Any,
        *,
        lower: bool,
        transpose: bool = False,
        unit: bool = False,
    ) -> None:
        """Replace right sides by the solutions of systems whose matrices are triangular.

        Args:
            out: The right sides, of shape (count, n, k); none of these is 0.
            matrices: Shape (count, n, n), of the same dtype, float32 or float64.
            addresses: Two int64 arrays with the addresses of all matrices and of their right
                sides, where they are solved by one call; None: one after another.
            lower: Which triangle of each matrix counts.
            transpose: Whether to transpose it.
            unit: Whether its diagonal counts as 1.
        """
        count, n, k = out.shape
        # By columns, an array of ours is the transposed matrix: the system's transpose is solved,
        # in which the matrix is on the right, and of its triangles the other one counts.
        shared = (
            *map(ctypes.c_int, (_RIGHT, _UPPER if lower else _LOWER)),
            *map(ctypes.c_int, (_TRANSPOSED if transpose else _NOT_TRANSPOSED, unit, k, n)),
            ctypes.byref(_element(out.dtype).one),
        )
        letter, (n, k) = LETTERS[out.dtype.name], map(ctypes.c_int, (n, k))
        if addresses is not None:
            of_matrices, of_out = (ctypes.c_void_p(array.data.ptr) for array in addresses)
            ends = of_matrices, n, of_out, k, ctypes.c_int(count)
            return self._call(f"{letter}trsmBatched", self._handle, *shared, *ends)
        for a, b in zip(of_each(matrices, count), of_each(out, count), strict=True):
            self._call(f"{letter}trsm_v2", self._handle, *shared, a, n, b, k)
        return None

    def factor(self, matrices: Any, addresses: Any, pivots: Any, status: Any) -> None:
        """Replace many small matrices by the LU factors of the transposed ones, by one call.

        Args:
            matrices: Shape (count, n, n).
            addresses: An int64 array with the address of each.
            pivots: int32, of shape (count, n): the row that each row was exchanged with, from 1 on.
            status: int32, one per matrix: 0, or the place on the diagonal of a 0, from 1 on.
        """
        count, n = map(ctypes.c_int, pivots.shape)
        arrays = [ctypes.c_void_p(array.data.ptr) for array in (addresses, pivots, status)]
        function = f"{LETTERS[matrices.dtype.name]}getrfBatched"
        self._call(function, self._handle, n, arrays[0], n, *arrays[1:], count)


def _step(batch: Any) -> int:
    """Return how many elements lie between the matrices; a batch of one is used for all."""
    return 0 if len(batch) == 1 else int(batch.shape[1] * batch.shape[2])


@cache  # NumPy builds a dtype's name on each access.
def _element(dtype: Any) -> _Element:
    element = _ELEMENTS.get(dtype.name)
    if element is None:
        raise InvalidArgumentError(
            f"cuBLAS multiplies {', '.join(_ELEMENTS)}. Received: {dtype.name}. Cast the arrays."
        )
    return element


def _computed_in(element: _Element) -> int:
    if element.kind == _FLOAT32:
        return _COMPUTE_TF32 if product_settings.tensor_float_32_allowed() else _COMPUTE_32F
    return element.compute
