"""Where NVIDIA's libraries are on this machine, for those that are used through ctypes.

A library of Python's packages comes first, since they say which versions go together.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from collections.abc import Iterator, Sequence
from importlib import util
from pathlib import Path
from typing import Any


def find(name: str, version: int, folders: Sequence[str], needs: Sequence[str] = ()) -> Any:
    """Return a library, opened, which starts nothing; None where there is none that opens.

    Args:
        name: What it is called, as in 'cublas' for libcublas.so.12.
        version: Its major version, as in 12.
        folders: Where it may be below Python's package `nvidia`.
        needs: The names of libraries of the same version that it is linked to. They lie beside it,
            where the system need not look.
    """
    for path in _places(name, version, folders):
        library = _opened(path, name, needs)
        if library is not None:
            return library
    return None


def _places(name: str, version: int, folders: Sequence[str]) -> Iterator[str]:
    """Yield where a library may be, the likeliest first."""
    file = f"lib{name}.so.{version}"
    found = by_pathfinder(name)
    # It takes the newest, which may be one for another CuPy.
    if found is not None and re.search(rf"\.so\.{version}(\.|$)", found):
        yield found
    packages = util.find_spec("nvidia")
    for folder in (packages and packages.submodule_search_locations) or ():
        for part in folders:
            yield str(Path(folder, part, "lib", file))
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        root = os.environ.get(variable)
        if root:
            yield str(Path(root, "lib64", file))
            yield str(Path(root, "lib", file))
    yield file


def by_pathfinder(name: str) -> str | None:
    """Return where NVIDIA's own package for it, cuda-pathfinder, finds a library, if it does."""
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = pathfinder.load_nvidia_dynamic_lib(name).abs_path
    except (ImportError, RuntimeError):  # Neither it nor the library has to be there.
        return None
    return None if path is None else str(path)


def _opened(path: str, name: str, needs: Sequence[str]) -> Any:
    if Path(path).is_absolute():
        for other in needs:
            _try(path.replace(f"lib{name}.so", f"lib{other}.so"))
    return _try(path)


def _try(path: str) -> Any:
    try:
        return ctypes.CDLL(path)
    except OSError:
        return None
