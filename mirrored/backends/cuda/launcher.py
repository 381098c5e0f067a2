"""Launches kernels and library calls on a backend's stream, and what a kernel is.

Texts are compiled when they are first needed. A kernel launches on the stream of the backend that
it is given, and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored.backends.backend import OutOfPoolMemory
from mirrored.backends.cuda import solver
from mirrored.backends.cuda.blas import Blas
from mirrored.backends.cuda.compiling import Modules, Source
from mirrored.backends.cuda.current_card import translation

Shape = tuple[int, ...]
# The shape and dtype of an array, as in the library's TensorSpec.
Spec = tuple[Shape, np.dtype[Any]]


class Launcher:
    """Launches work on the compute stream of one backend, in the order of the calls.

    Kernels launch on the stream that is current, which the backend sees to. The handle of each
    library is created when it is first used. A recorded program gives kernels another launcher,
    which notes the calls.
    """

    def __init__(self, cupy: Any, stream: Any, blas: Any, modules: Modules) -> None:
        self._cupy = cupy
        self._stream = stream
        self._make_blas = blas
        self._blas: Blas | None = None
        self._solver: solver.Solver | None = None
        self.kernel = modules.kernel  # A kernel of a text, by its name, compiled.

    def launch(
        self,
        source: Source,
        name: str,
        blocks: tuple[int, int, int],
        threads: tuple[int, int, int],
        args: tuple[Any, ...],
        shared: int = 0,
    ) -> None:
        """Launch a kernel.

        Args:
            source: The text that it is in.
            name: Its name there.
            blocks: The size of the grid, each at least 1.
            threads: The size of a block, at most 1024 in all.
            args: Arrays of the device, passed as pointers; NumPy scalars, passed by value; NumPy
                arrays of int64, passed as a struct of N `long long`.
            shared: Bytes of dynamic shared memory.
        """
        kernel = self.kernel(source, name)
        self.insist(kernel, blocks, threads, tuple(map(_argument, args)), shared_mem=shared)

    def insist(self, function: Callable[..., None], *args: Any, **options: Any) -> None:
        """Ask CUDA for work, and where the card is full ask once more.

        What others run there takes memory for a moment. A step that has begun to write goes on.

        Args:
            function: The function that asks for it, on a stream of this card.
            *args: Its arguments; so are the options.
            **options: Those given by name.
        """
        try:
            function(*args, **options)
        except Exception as error:
            capturing = self._cupy.cuda.runtime.streamIsCapturing
            full = isinstance(translation(error, ""), OutOfPoolMemory)
            if not full or capturing(self._stream.ptr):
                raise
            function(*args, **options)

    def prepare(self, method: str, args: tuple[Any, ...]) -> None:
        """Make what a call of a method will need: its kernel, compiled, or a library's handle."""
        if method == "launch":
            self.kernel(*args[:2])
        elif method in ("factor", "matmul", "solve_triangular"):
            _ = self.blas
        elif method == "decompose":
            _ = self.solver

    def copy(self, target: Any, source: Any) -> None:
        """Copy one contiguous array of this card into another one of as many bytes."""
        if target.nbytes:
            runtime = self._cupy.cuda.runtime
            self.insist(
                runtime.memcpyAsync,
                target.data.ptr,
                source.data.ptr,
                target.nbytes,
                runtime.memcpyDeviceToDevice,
                self._stream.ptr,
            )

    def clear(self, target: Any) -> None:
        """Set all bytes of a contiguous array to 0."""
        if target.nbytes:
            clear = self._cupy.cuda.runtime.memsetAsync
            self.insist(clear, target.data.ptr, 0, target.nbytes, self._stream.ptr)

    def matmul(self, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
        """Write a product of matrices; see `Blas`."""
        self.blas.matmul(out, a, b, transpose_a=transpose_a, transpose_b=transpose_b)

    def solve_triangular(self, *args: Any, **options: bool) -> None:
        """Solve triangular systems; see `Blas`."""
        self.blas.solve_triangular(*args, **options)

    def factor(self, *args: Any) -> None:
        """Write the LU factors of many small matrices; see `Blas`."""
        self.blas.factor(*args)

    def decompose(self, routine: str, dtype: Any, count: int, work: Any, *args: Any) -> None:
        """Run a routine of cuSOLVER for each of several matrices, or once for all.

        It may wait for the card, so it is in no CUDA graph.

        Args:
            routine: Its name behind the letter of the dtype, as in 'potrf'.
            dtype: float32 or float64.
            count: How often it is called.
            work: Its scratch memory, which all calls share.
            *args: The arguments behind the handle: numbers, None for NULL, `work`, and arrays, of
                which each call gets another part in order.
        """
        self.refuse_capture()
        self.solver.decompose(routine, dtype, count, work, *args)

    def refuse_capture(self) -> None:
        """Raise NotImplementedError where a CUDA graph is captured: what follows waits."""
        if self._cupy.cuda.runtime.streamIsCapturing(self._stream.ptr):
            raise NotImplementedError(
                "Decompositions, which may wait for the card, are in no graph."
            )

    def workspace(self, routine: str, dtype: Any, *args: int | None) -> int:
        """Return how many elements of scratch memory a routine of cuSOLVER needs.

        Args:
            routine: Its name behind the letter of the dtype.
            dtype: float32 or float64.
            *args: The arguments behind the handle of its function for that, None for addresses.
        """
        return self.solver.workspace(routine, dtype, *args)

    @property
    def solver(self) -> solver.Solver:
        """The handle of cuSOLVER for this stream, created at its first routine."""
        if self._solver is None:
            self._solver = solver.Solver(solver.load(), self._stream.ptr)
        return self._solver

    @property
    def blas(self) -> Blas:
        """The handle of cuBLAS for this stream, made at the first product."""
        if self._blas is None:
            self._blas = self._make_blas()
        return self._blas


def _argument(value: Any) -> Any:
    """Return an argument as CuPy takes it: a struct is one element of as many bytes."""
    if isinstance(value, np.ndarray):
        return value.view(f"V{value.nbytes}")
    return value


def launch_for_each(
    xp: Launcher,
    source: Source,
    name: str,
    count: int,
    args: tuple[Any, ...],
    *,
    threads: int = 256,
) -> None:
    """Launch a kernel with a thread per element, in blocks of `threads` threads."""
    xp.launch(source, name, (-(-count // threads), 1, 1), (threads, 1, 1), args)


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """An op's kernel on a device of this backend.

    Attributes:
        run: Called with a launcher, the array to write, those to read, and the op's attributes;
            with `workspace=(array, ...)` where it needs scratch memory.
        workspace: From the inputs' specs and the attributes to the specs of that memory.
        asks: Whether `workspace` takes a launcher first, since libraries say what they need.
        verdicts: The number of rows of the first array of that memory in which the kernel leaves
            another number than 0 for each matrix that it has no result for. The host reads them
            behind it, so it is in no CUDA graph.
    """

    run: Callable[..., None]
    workspace: Callable[..., tuple[Spec, ...]] | None = None
    asks: bool = False
    verdicts: int = 0
