"""Imports CuPy when a card is first used; no other module imports it.

What is missing then is told in one sentence, with the command that mends it.
"""

import importlib
import os
import re
import threading
from importlib import metadata
from typing import Any

from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.current_card import advice
from mirrored.errors import DeviceUnavailableError

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
