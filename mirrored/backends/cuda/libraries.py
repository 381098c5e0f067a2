"""Finds NVIDIA's libraries on this machine, and creates the handles of cuBLAS and cuSOLVER.

NVIDIA's own package looks for them, cuda-pathfinder: among Python's packages first, since they say
which versions go together. They are called through ctypes; a handle is created for a card, computes
on one stream, and returns a status from each function.
"""

import ctypes
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from mirrored.backends.cuda import toolkit
from mirrored.errors import DeviceUnavailableError, ResourceExhaustedError


def find(name: str, version: int) -> Any:
    """Return a library, opened, which starts nothing; None where there is none that opens.

    Args:
        name: What it is called, as in 'cublas' for libcublas.so.12.
        version: Its major version, as in 12.
    """
    path = by_pathfinder(name)
    # It takes the newest, which may be one for another CuPy: then the system may know ours.
    fits = path is not None and re.search(rf"\.so\.{version}(\.|$)", path)
    try:
        return ctypes.CDLL(path if fits else f"lib{name}.so.{version}")
    except OSError:
        return None


def by_pathfinder(name: str) -> str | None:
    """Return where cuda-pathfinder finds a library, if it does; it is loaded then."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = pathfinder.load_nvidia_dynamic_lib(name).abs_path
    except (ImportError, RuntimeError):  # Neither it nor the library has to be there.
        return None
    return None if path is None else str(path)


# What names of functions have for a dtype.
LETTERS = {"float32": "S", "float64": "D"}


def of_each(array: Any, count: int) -> Iterator[ctypes.c_void_p]:
    """Yield where each of the parts of an array begins that are as many matrices'."""
    step = array.nbytes // count
    return (ctypes.c_void_p(array.data.ptr + i * step) for i in range(count))


class MatrixLibrary(NamedTuple):
    """How a library names its file, its functions and its errors.

    Attributes:
        title: As in 'cuBLAS'.
        name: As in 'cublas' for libcublas.so.12.
        lag: By how much the number of its file is below CUDA's version.
        prefix: Of its functions' names.
        suffix: Of the names of the functions that every handle needs.
        statuses: The names of its statuses.
    """

    title: str
    name: str
    lag: int
    prefix: str
    suffix: str
    statuses: Mapping[int, str]

    def load(self) -> Any:
        """Return the library of the version of CUDA that CuPy is built for.

        Raises:
            DeviceUnavailableError: CuPy cannot be used, or there is no such library.
        """
        cupy = toolkit.toolkit()
        major = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000
        # In the packages for CUDA 13 all libraries are in one folder.
        library = find(self.name, major - self.lag)
        if library is not None:
            return library
        raise DeviceUnavailableError(
            f"This cannot be computed on GPUs: {self.title} for CUDA {major}, lib{self.name}.so."
            f"{major - self.lag}, was not found among Python's packages, below CUDA_PATH or where "
            f"the system keeps libraries. Install it: {toolkit.install_command(major)}"
        )

    def version(self, library: Any) -> str:
        """Return the version of a loaded library, as in '12.9.1'. It starts nothing on a card."""
        parts, function = [], f"{self.name}GetProperty"
        for which in range(3):  # Major, minor and patch.
            value = ctypes.c_int()
            self.check(
                function, getattr(library, function)(ctypes.c_int(which), ctypes.byref(value))
            )
            parts.append(str(value.value))
        return ".".join(parts)

    def check(self, function: str, status: int) -> None:
        """Raise the error that a function's status stands for, if any."""
        if not status:
            return
        name = self.statuses.get(status, "an unknown status")
        said = f"{function} answered {name} ({status})"
        if name.endswith("_ALLOC_FAILED"):
            raise ResourceExhaustedError(
                f"{self.title} has too little of the card's memory left. Received: {said}. Give "
                "the logical devices lower memory limits, or end other programs on the card."
            )
        raise RuntimeError(
            f"{self.title} refused what was asked of it. Received: {said}. If it happens again, "
            "please report it with the output of `python -m mirrored devices`."
        )


class Handle:
    """A handle of a library, for one stream.

    Args:
        library: The library, loaded.
        stream: The address of the stream; the card that it is on must be the current one.

    Raises:
        ResourceExhaustedError: The card has too little memory for what the library keeps.
        RuntimeError: The library cannot be started.
    """

    kind: ClassVar[MatrixLibrary]

    def __init__(self, library: Any, stream: int) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._call(f"Create{self.kind.suffix}", ctypes.byref(self._handle))
        try:
            self._call(f"SetStream{self.kind.suffix}", self._handle, ctypes.c_void_p(stream))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free what the library keeps, waiting for the card; afterwards it computes nothing."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle.value:
            self._call(f"Destroy{self.kind.suffix}", handle)

    def _call(self, function: str, *args: Any) -> None:
        """Call a function by its name behind the library's prefix, and check its status."""
        name = self.kind.prefix + function
        self.kind.check(name, getattr(self._library, name)(*args))
