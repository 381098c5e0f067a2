"""Launches kernels and library calls on a backend's stream.

Texts are compiled when they are first needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirrored.backends.cuda import solver
from mirrored.backends.cuda.blas import Blas
from mirrored.backends.cuda.compiling import Modules, Source


class CudaLauncher:
    """Launches on the stream that is current, which the backend sees to.

    The handle of each library is created when it is first used.
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
        """Launch a kernel; see `Launcher`."""
        kernel = self.kernel(source, name)
        kernel(blocks, threads, tuple(map(_argument, args)), shared_mem=shared)

    def prepare(self, method: str, args: tuple[Any, ...]) -> None:
        """Make what a call of a method will need: its kernel, compiled, or a library's handle."""
        if method == "launch":
            self.kernel(*args[:2])
        elif method in ("factor", "matmul", "solve_triangular"):
            _ = self.blas
        elif method == "decompose":
            _ = self.solver

    def copy(self, target: Any, source: Any) -> None:
        """Copy an array of this card; see `Launcher`."""
        if target.nbytes:
            runtime = self._cupy.cuda.runtime
            runtime.memcpyAsync(
                target.data.ptr,
                source.data.ptr,
                target.nbytes,
                runtime.memcpyDeviceToDevice,
                self._stream.ptr,
            )

    def clear(self, target: Any) -> None:
        """Set all bytes to 0; see `Launcher`."""
        if target.nbytes:
            runtime = self._cupy.cuda.runtime
            runtime.memsetAsync(target.data.ptr, 0, target.nbytes, self._stream.ptr)

    def matmul(self, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
        """Write a product of matrices; see `Launcher`."""
        self.blas.matmul(out, a, b, transpose_a=transpose_a, transpose_b=transpose_b)

    def solve_triangular(self, *args: Any, **options: bool) -> None:
        """Solve triangular systems; see `Launcher`."""
        self.blas.solve_triangular(*args, **options)

    def factor(self, *args: Any) -> None:
        """Write the LU factors of many small matrices; see `Launcher`."""
        self.blas.factor(*args)

    def decompose(self, routine: str, dtype: Any, count: int, work: Any, *args: Any) -> None:
        """Run a routine of cuSOLVER; see `Launcher`."""
        self.refuse_capture()
        self.solver.decompose(routine, dtype, count, work, *args)

    def refuse_capture(self) -> None:
        """Raise where the stream is being captured; see `Launcher`."""
        if self._cupy.cuda.runtime.streamIsCapturing(self._stream.ptr):
            raise NotImplementedError(
                "Decompositions, which may wait for the card, are in no graph."
            )

    def workspace(self, routine: str, dtype: Any, *args: int | None) -> int:
        """Return how many elements of scratch memory a routine needs; see `Launcher`."""
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
