"""Matrix products through the cuBLAS that CuPy has loaded, called by ctypes alone.

It shares no line with what is measured, so that a mistake there does not move its limit.
"""

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import Array, Product

WORKSPACE = 32 * 2**20  # What NVIDIA advises for the cards that need most.

# Data and compute types of the headers library_types.h and cublas_api.h, by precision.
_TYPES = {"float32": (0, 68), "tf32": (0, 77), "bfloat16": (14, 68)}
_DEFAULT_ALGORITHM = -1


def loaded_library() -> Any:
    """Return the cuBLAS that this process has loaded already.

    Raises:
        RuntimeError: It has loaded none.
    """
    found = re.search(r"/\S*/libcublas\.so\S*", Path("/proc/self/maps").read_text())
    if found is None:
        raise RuntimeError("CuPy has loaded no cuBLAS library")
    return ctypes.CDLL(found[0])


def layout(product: Product) -> tuple[bool, bool]:
    """Return whether each factor lies in memory as the transpose of what is multiplied.

    A step has its inputs and weights as they are, and needs their transposes going backward.
    """
    return product.kind == "weight gradient", product.kind == "input gradient"


def stored(values: Array, precision: str) -> Array:
    """Return float32 as it is, or the upper halves of its bits, which are bfloat16."""
    if precision != "bfloat16":
        return values
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def numbers(array: Array) -> Array:
    """Return what `stored` made as float32 again."""
    if array.dtype != np.uint16:
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Cublas:
    """A handle on a stream, with a workspace of its own.

    Attributes:
        library: The functions of cuBLAS.
        handle: The handle.
    """

    library: Any
    handle: ctypes.c_void_p

    @classmethod
    def create(cls, library: Any, stream: int, workspace: int) -> "Cublas":
        """Return a new handle.

        Args:
            library: What `loaded_library` returns.
            stream: The stream's address.
            workspace: That of memory of `WORKSPACE` bytes.
        """
        handle = ctypes.c_void_p()
        made = cls(library, handle)
        made.call("cublasCreate_v2", ctypes.byref(handle))
        made.call("cublasSetStream_v2", handle, ctypes.c_void_p(stream))
        memory = (ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE))
        made.call("cublasSetWorkspace_v2", handle, *memory)
        return made

    def version(self) -> str:
        """Return the library's version, as in 12.9.1."""
        number = ctypes.c_int()
        self.call("cublasGetVersion_v2", self.handle, ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def multiply(self, product: Product, precision: str, a: int, b: int, out: int) -> None:
        """Multiply matrices whose rows are contiguous, at these addresses.

        cuBLAS counts by columns: to it each matrix is its transpose, and so is the result, which
        is the product of the transposes in the other order.
        """
        transposed_a, transposed_b = layout(product)
        rows, inner, columns = product.rows, product.inner, product.columns
        dtype, compute = _TYPES[precision]
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self.call(
            "cublasGemmEx",
            *(self.handle, int(transposed_b), int(transposed_a), columns, rows, inner),
            ctypes.byref(one),
            *(ctypes.c_void_p(b), dtype, inner if transposed_b else columns),
            *(ctypes.c_void_p(a), dtype, rows if transposed_a else inner),
            ctypes.byref(zero),
            *(ctypes.c_void_p(out), dtype, columns, compute, _DEFAULT_ALGORITHM),
        )

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            RuntimeError: It did not succeed.
        """
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} gave status {status}")
