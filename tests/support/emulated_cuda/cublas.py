"""cuBLAS over the emulated cards: products of column-major matrices, by NumPy.

They are asked for as with the real library, and run late, as all work of a stream does.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulated_cuda import bfloat16, faults
from emulated_cuda.addresses import Block, Region
from emulated_cuda.faults import EmulatorError
from emulated_cuda.foreign import Library, write
from emulated_cuda.machine import Machine
from emulated_cuda.queues import Queue

_OK, _NOT_INITIALIZED, _ALLOC_FAILED, _INVALID_VALUE = 0, 1, 3, 7
_EXECUTION_FAILED, _INTERNAL_ERROR, _NOT_SUPPORTED = 13, 14, 15
_VERSION = 120900
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
_SCRIBBLE = 1 << 16  # How much of a workspace is written over with each product, at most.


@dataclass
class _Handle:
    """What a handle stands for: its card, stream, math mode and workspace."""

    card: int
    stream: int = 0
    mode: int = 0
    workspace: tuple[int, int] | None = None


class _Matrix(NamedTuple):
    """A column-major matrix in memory, or several, with steps in elements."""

    address: int
    kind: int
    rows: int
    columns: int
    step: int
    batch: int
    batch_step: int

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

    a: _Matrix
    b: _Matrix
    c: _Matrix
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


class _Cublas:
    """The library's state."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._handles: dict[int, _Handle] = {}

    def create(self, to: int | None) -> int:
        machine = self._machine
        if not to:
            return _INVALID_VALUE
        with machine.call("cublasCreate"):
            machine.unsafe()
            number = machine.handle() + (1 << 40)  # It does not fit an int.
            self._handles[number] = _Handle(machine.use(machine.current.device))
        write(to, c_void_p(number))
        return _OK

    def destroy(self, handle: int | None) -> int:
        return _OK if self._handles.pop(handle or 0, None) else _NOT_INITIALIZED

    def version(self, handle: int | None, to: int | None) -> int:
        if not to:
            return _INVALID_VALUE
        write(to, c_int(_VERSION))
        return _OK

    def get_property(self, which: int, to: int | None) -> int:
        if which not in range(3) or not to:
            return _INVALID_VALUE
        write(to, c_int((_VERSION // 10000, _VERSION // 100 % 100, _VERSION % 100)[which]))
        return _OK

    def set_stream(self, handle: int | None, stream: int | None) -> int:
        state = self._handles.get(handle or 0)
        if state is None:
            return _NOT_INITIALIZED
        if self._queue(state.card, stream or 0).card != state.card:
            raise EmulatorError("A handle of cuBLAS was given a stream of another card.")
        state.stream, state.workspace = stream or 0, None  # As the documentation says.
        return _OK

    def set_workspace(self, handle: int | None, address: int | None, nbytes: int) -> int:
        state = self._handles.get(handle or 0)
        if state is None:
            return _NOT_INITIALIZED
        if not address or address % _ALIGNED:
            return _INVALID_VALUE
        state.workspace = address, nbytes
        self._inside(state.card, address, nbytes)
        return _OK

    def set_math_mode(self, handle: int | None, mode: int) -> int:
        state = self._handles.get(handle or 0)
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
        state = self._handles.get(handle or 0)
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
            _Matrix(a or 0, at, *shape_a, lda, batch, sa),
            _Matrix(b or 0, bt, *shape_b, ldb, batch, sb),
            _Matrix(c or 0, ct, m, n, ldc, batch, sc),
            (bool(ta), bool(tb)),
            number.from_address(alpha).value,
            number.from_address(beta).value,
            compute,
            state.mode,
        )
        return self._enqueue(state, product, empty=not k)

    def _enqueue(self, state: _Handle, product: _Product, *, empty: bool) -> int:
        machine = self._machine
        with machine.call("cublasGemmEx", state.card):
            queue = self._queue(state.card, state.stream)
            if queue.capture is not None and state.workspace is None:
                return _INTERNAL_ERROR
            if machine.current.device != state.card:
                raise EmulatorError("A product needs its handle's card to be the current one.")
            used = [product.c] if empty else [product.a, product.b, product.c]
            touched = [self._inside(state.card, each.address, each.nbytes) for each in used]
            if state.workspace is not None:
                touched.append(self._inside(state.card, *state.workspace))
            machine.enqueue(queue, "product", _runner(product, touched, state.workspace, empty))
        return _OK

    def _queue(self, card: int, stream: int) -> Queue:
        return self._machine.queue(stream) if stream else self._machine.null_queue(card)

    def _inside(self, card: int, address: int, nbytes: int) -> tuple[Region, Block]:
        block = self._machine.addresses.block(address)
        if block is None or address + nbytes > block.address + block.asked:
            raise EmulatorError(f"cuBLAS: {nbytes} bytes from {address:#x} on are in no array.")
        if not block.region.live:
            raise EmulatorError("cuBLAS: the pool of this memory is gone, and the memory with it.")
        other = block.region.card
        if other != card and (card, other) not in self._machine.peers:
            raise EmulatorError(f"cuBLAS: an array is on card {other}, the handle on {card}.")
        return block.region, block


def _runner(
    product: _Product,
    touched: list[tuple[Region, Block]],
    workspace: tuple[int, int] | None,
    empty: bool,
) -> Callable[[], None]:
    def run() -> None:
        if not all(region.live for region, _ in touched):
            raise faults.error(faults.ILLEGAL_ADDRESS)
        if workspace is not None:  # Where two products share it, one spoils the other.
            ctypes.memset(workspace[0], 0xEE, min(workspace[1], _SCRIBBLE))
        if empty:
            before = product.c.read()
            product.c.write(product.beta * before if product.beta else np.zeros_like(before))
        else:
            product.run()
        for _, block in touched:
            block.check("A product")

    return run


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

    def status(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def call(*args: Any) -> int:
            # Nothing can be raised through C.
            with machine.lock:
                try:
                    return function(*args)
                except EmulatorError as error:
                    machine.failures.append(error)
                    return _INTERNAL_ERROR
                except RuntimeError as error:
                    memory = getattr(error, "status", 0) == faults.MEMORY_ALLOCATION
                    return _ALLOC_FAILED if memory else _EXECUTION_FAILED

        return call

    functions: dict[str, tuple[list[Any], Callable[..., int]]] = {
        "cublasCreate_v2": ([c_void_p], cublas.create),
        "cublasDestroy_v2": ([c_void_p], cublas.destroy),
        "cublasGetVersion_v2": ([c_void_p, c_void_p], cublas.version),
        "cublasGetProperty": ([c_int, c_void_p], cublas.get_property),
        "cublasSetStream_v2": ([c_void_p, c_void_p], cublas.set_stream),
        "cublasSetWorkspace_v2": ([c_void_p, c_void_p, c_size_t], cublas.set_workspace),
        "cublasSetMathMode": ([c_void_p, c_int], cublas.set_math_mode),
        "cublasGemmEx": (gemm, cublas.gemm),
        "cublasGemmStridedBatchedEx": (batched, cublas.batched),
    }
    return Library({name: (types, status(call)) for name, (types, call) in functions.items()})
