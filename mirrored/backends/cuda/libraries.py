"""Finds NVIDIA's libraries on this machine, to load them through ctypes.

NVIDIA's own package looks for them, cuda-pathfinder: among Python's packages first, since they say
which versions go together.
"""

import ctypes
import importlib
import re
from typing import Any


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
