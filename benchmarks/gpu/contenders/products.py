"""The matrix products of a step alone, which no step that computes them can beat.

They go through cuBLAS as one CUDA graph, in the step's precision, sizes and layouts.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))
import cupy
import numpy as np

from benchmarks.gpu.contenders import protocol
from benchmarks.gpu.contenders.cublas import (
    WORKSPACE,
    Cublas,
    layout,
    loaded_library,
    numbers,
    stored,
)
from benchmarks.workloads import Product, Workload, matrix_products

DRAWN = 1_000_003  # Numbers, repeated; a prime, so that no two rows of a matrix are the same.
CHECKED = 64  # Columns of each product's first row.

# The largest error in relation to the sum of the terms' magnitudes.
TOLERANCES = {"float32": 1e-5, "tf32": 2e-3, "bfloat16": 2e-2}


class Products:
    """The products of a workload on the card.

    Args:
        workload: Whose products.
        precision: "float32", "tf32" or "bfloat16".
    """

    def __init__(self, workload: Workload, precision: str) -> None:
        """Fill the matrices, compute once, look at the results, and capture the calls."""
        self._precision = precision
        self._stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.get_cublas_handle()  # So that the library is loaded.
        self._workspace = cupy.empty(WORKSPACE, np.uint8)
        self._blas = Cublas.create(
            loaded_library(), self._stream.ptr, int(self._workspace.data.ptr)
        )
        rng = np.random.default_rng(0)
        self._work = [self._matrices(product, rng) for product in matrix_products(workload)]
        cupy.cuda.Device().synchronize()
        self._multiply()  # Not for the first time in the capture: kernels are loaded lazily.
        self._stream.synchronize()
        for product, a, b, out in self._work:
            self._check(product, a, b, out)
        with self._stream:
            self._stream.begin_capture()
            self._multiply()
            self._graph = self._stream.end_capture()

    def losses(self, steps: int) -> list[float]:
        """Return nothing: there are none."""
        return []

    def run(self, steps: int) -> int:
        """Compute all products so many times, and wait."""
        for _ in range(steps):
            self._graph.launch(self._stream)
        self._stream.synchronize()
        return steps

    def _matrices(self, product: Product, rng: np.random.Generator) -> tuple[Any, ...]:
        precision = self._precision
        transposed_a, transposed_b = layout(product)
        factors = (
            (product.rows, product.inner, transposed_a),
            (product.inner, product.columns, transposed_b),
        )
        # Drawing all of them would take longer than everything else.
        values = rng.standard_normal(DRAWN, np.float32)
        a, b = (
            cupy.asarray(stored(np.resize(values, shape[::-1] if turned else shape), precision))
            for *shape, turned in factors
        )
        return product, a, b, cupy.zeros((product.rows, product.columns), a.dtype)

    def _multiply(self) -> None:
        for product, a, b, out in self._work:
            addresses = [int(array.data.ptr) for array in (a, b, out)]
            self._blas.multiply(product, self._precision, *addresses)

    def _check(self, product: Product, a: Any, b: Any, out: Any) -> None:
        """Hold some results to NumPy's: a limit that computes something else is none."""
        transposed_a, transposed_b = layout(product)
        row = numbers((a[:, 0] if transposed_a else a[0]).get()).astype(np.float64)
        factor = numbers((b[:CHECKED].T if transposed_b else b[:, :CHECKED]).get())
        found = numbers(out[0, :CHECKED].get())
        error = np.abs(found - row @ factor) / (np.abs(row) @ np.abs(factor))
        if not error.max() < TOLERANCES[self._precision]:
            raise RuntimeError(f"the {product.kind} is off by {error.max():g}")


def make(workload: Workload, precision: str, mode: str) -> protocol.Session:
    """Return the session of the only mode."""
    return Products(workload, precision)


def facts() -> dict[str, Any]:
    """Return the versions of CuPy and of cuBLAS."""
    cupy.cuda.get_cublas_handle()
    workspace = cupy.empty(WORKSPACE, np.uint8)
    blas = Cublas.create(loaded_library(), 0, int(workspace.data.ptr))
    version = blas.version()
    blas.call("cublasDestroy_v2", blas.handle)
    return {"version": cupy.__version__, "cuBLAS": version}


if __name__ == "__main__":
    protocol.parse_arguments()
    protocol.run(make, facts)
