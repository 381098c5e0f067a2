"""Finds CuPy and NVIDIA's libraries when a card is first used; no other module imports CuPy.

An error names what is missing then, with the command that installs it. NVIDIA's own package
looks for the libraries, cuda-pathfinder: among Python's packages first, since they say which
versions go together. They are called through ctypes; a handle of cuBLAS or cuSOLVER is created for
a card, computes on one stream, and returns a status from each function.
"""

import ctypes
import importlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.current_card import advice
from mirrored.errors import DeviceUnavailableError, ResourceExhaustedError

_DISTRIBUTION = re.compile(r"(amd-)?cupy(-(cuda|rocm).*)?", re.IGNORECASE)
_FOR_A_VERSION = re.compile(r"cupy-cuda(\d+)x", re.IGNORECASE)

# The versions of CUDA that we have extras for, which bring what CuPy's wheels need.
_OLDEST, _NEWEST = 12, 13

_lock = threading.Lock()
_loaded: Any = None


def toolkit() -> Any:
    """Return the module ``cupy``, imported and checked the first time.

    Raises:
        DeviceUnavailableError: CuPy or a part of CUDA cannot be used here. It is looked for again
            the next time.
    """
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:  # Another thread may have been first.
                _loaded = _checked()
    return _loaded


def install_command(major: int | None) -> str:
    """Return the command that installs what a version of CUDA needs.

    Args:
        major: CUDA's major version; None where it is not known.

    Example:
        >>> install_command(12)
        "pip install '.[cuda12]' in a checkout of mirrored's repository"
    """
    nearest = _OLDEST if major is None else min(max(major, _OLDEST), _NEWEST)
    return f"pip install '.[cuda{nearest}]' in a checkout of mirrored's repository"


def wanted_major() -> int | None:
    """Return the major version of CUDA that libraries have to be for; None where nothing says.

    It is that of the CuPy that is installed, or else the driver's. It imports and starts nothing.
    """
    matches = map(_FOR_A_VERSION.fullmatch, _packages())
    major = next((int(match[1]) for match in matches if match), None)
    return _of_the_driver() if major is None else major


def _checked() -> Any:
    _check_packages()
    # CUDA's numbers of cards are then those of nvidia-smi, as CUDA_VISIBLE_DEVICES is read here.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    cupy = _import()
    _check_driver(cupy)
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # CuPy raises what its loader of libraries raises.
        command = install_command(_built_for(cupy))
        raise DeviceUnavailableError(
            "GPUs cannot be used: NVRTC, which compiles the kernels, was not found. "
            f"Received: {_first_line(error)}. Install it: {command}"
        ) from error
    return cupy


def _check_packages() -> None:
    """Refuse two CuPy packages: each has overwritten files of the other."""
    installed = _packages()
    if len(installed) > 1:
        raise DeviceUnavailableError(
            "GPUs cannot be used: several CuPy packages are installed, and they overwrite each "
            f"other. Received: {', '.join(installed)}. Remove them, and install one: "
            f"{_exchange_command(_of_the_driver())}"
        )


def _import() -> Any:
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _unusable(error) from error
        raise DeviceUnavailableError(
            "GPUs cannot be used: CuPy is not installed. Install it: "
            f"{install_command(_of_the_driver())}"
        ) from None
    except ImportError as error:
        raise _unusable(error) from error


def _unusable(error: ImportError) -> DeviceUnavailableError:
    return DeviceUnavailableError(
        f"GPUs cannot be used: CuPy cannot be imported. Received: {_first_line(error)}. Install it "
        f"again: {_exchange_command(_of_the_driver())}"
    )


def _check_driver(cupy: Any) -> None:
    runtime = cupy.cuda.runtime
    driver, built_for = runtime.driverGetVersion(), _built_for(cupy)
    if not driver:
        raise DeviceUnavailableError(
            "GPUs cannot be used: CuPy finds no NVIDIA driver. Install one, from "
            "https://www.nvidia.com/drivers; for a container, start it with `--gpus all`."
        )
    if driver // 1000 < built_for:
        change = (
            f", or a CuPy for it: {_exchange_command(driver // 1000)}"
            if driver // 1000 >= _OLDEST
            else ""
        )
        raise DeviceUnavailableError(
            "GPUs cannot be used: the NVIDIA driver is too old for this CuPy. Received: a driver "
            f"for CUDA up to {driver // 1000}.{driver % 1000 // 10}, and CuPy for CUDA "
            f"{built_for}. Install a newer driver, from https://www.nvidia.com/drivers{change}"
        )
    try:
        count = runtime.getDeviceCount()
    except RuntimeError as error:
        raise DeviceUnavailableError(
            f"GPUs cannot be used: CUDA does not start. Received: {_first_line(error)}. "
            f"{advice(getattr(error, 'status', None))}"
        ) from error
    if not count:
        raise DeviceUnavailableError(f"GPUs cannot be used: CUDA finds no card. {advice(100)}")


def _built_for(cupy: Any) -> int:
    """Return the major version of CUDA that a CuPy is built for, and brings the runtime of."""
    return int(cupy.cuda.runtime.runtimeGetVersion()) // 1000


def _of_the_driver() -> int | None:
    cuda = nvml.survey().cuda
    return None if cuda is None else cuda[0]


def _exchange_command(major: int | None) -> str:
    """Return the command that puts a CuPy for a version of CUDA in the place of what is there."""
    installed = _packages()
    removal = f"pip uninstall -y {' '.join(installed)} && " if installed else ""
    return removal + install_command(major)


def _packages() -> list[str]:
    """Return the names of the CuPy packages that are installed."""
    # What a broken installation left behind may have no name.
    names = {str(entry.metadata["Name"]) for entry in metadata.distributions() if entry.metadata}
    return sorted(filter(_DISTRIBUTION.fullmatch, names))


def _first_line(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    said = next((line for line in lines if line.strip("=- ")), "")
    return f"{type(error).__name__}: {said}".rstrip(".")


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
        cupy = toolkit()
        major = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000
        # In the packages for CUDA 13 all libraries are in one folder.
        library = find(self.name, major - self.lag)
        if library is not None:
            return library
        raise DeviceUnavailableError(
            f"This cannot be computed on GPUs: {self.title} for CUDA {major}, lib{self.name}.so."
            f"{major - self.lag}, was not found among Python's packages, below CUDA_PATH or where "
            f"the system keeps libraries. Install it: {install_command(major)}"
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
                f"{self.title} has too little memory left on the card. Received: {said}. Set "
                "lower memory limits for the logical devices, or end other programs on the card."
            )
        raise RuntimeError(
            f"{self.title} refused an operation. Received: {said}. If it happens again, please "
            "report it with the output of `python -m mirrored devices`."
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
