"""Matrix factorisations, eigenvalues and singular values by cuSOLVER, through ctypes.

It stores matrices by columns. Its functions may wait for the card, so no CUDA graph has them.
"""

import ctypes
from collections.abc import Iterable
from itertools import repeat
from typing import Any

from mirrored.backends.cuda.toolkit import LETTERS, Handle, MatrixLibrary, of_each

_STATUS = {
    number: f"CUSOLVER_STATUS_{name}"
    for number, name in enumerate(
        (
            "NOT_INITIALIZED",
            "ALLOC_FAILED",
            "INVALID_VALUE",
            "ARCH_MISMATCH",
            "MAPPING_ERROR",
            "EXECUTION_FAILED",
            "INTERNAL_ERROR",
            "MATRIX_TYPE_NOT_SUPPORTED",
            "NOT_SUPPORTED",
            "ZERO_PIVOT",
            "INVALID_LICENSE",
        ),
        1,
    )
}

_LIBRARY = MatrixLibrary("cuSOLVER", "cusolver", 1, "cusolverDn", "", _STATUS)
load, version = _LIBRARY.load, _LIBRARY.version


class Solver(Handle):
    """Decompositions on one stream: a handle of cuSOLVER."""

    kind = _LIBRARY

    def workspace(self, routine: str, dtype: Any, *args: int | None) -> int:
        """Return how many elements of scratch memory a routine needs; see `Launcher`."""
        size = ctypes.c_int()
        function = f"{LETTERS[dtype.name]}{routine}_bufferSize"
        values = [None if arg is None else ctypes.c_int(arg) for arg in args]
        self._call(function, self._handle, *values, ctypes.byref(size))
        return max(1, size.value)

    def decompose(self, routine: str, dtype: Any, count: int, work: Any, *args: Any) -> None:
        """Launch a routine for each of several matrices; see `Launcher`."""

        def values(arg: Any) -> Iterable[Any]:
            if arg is None or isinstance(arg, int):
                return repeat(arg if arg is None else ctypes.c_int(arg), count)
            if arg is work:
                return repeat(ctypes.c_void_p(arg.data.ptr), count)
            return of_each(arg, count)

        function = LETTERS[dtype.name] + routine
        for values_of_one in zip(*map(values, args), strict=True):
            self._call(function, self._handle, *values_of_one)
