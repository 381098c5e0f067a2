"""Imports packages that only some programs need, which the extras of this package install."""

import importlib
from typing import Any


def package(module: str, extra: str, purpose: str, otherwise: str = "") -> Any:
    """Import a module of an optional package.

    Args:
        module: The name of the module, which begins with the package's.
        extra: The extra that installs the package.
        purpose: What needs it, as the beginning of a sentence that goes on with the package.
        otherwise: What to do without the package, as further sentences.

    Raises:
        ImportError: The package is not installed.

    Example:
        >>> package("json", "all", "Files are read by").loads("[2.0]")
        [2.0]
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(
            f"{purpose} the package {name}, which is not installed: install mirrored's extra "
            f"`{extra}`, or run pip install {name}.{otherwise}"
        ) from error


def h5py() -> Any:
    """Import the package that reads and writes HDF5, which is slow.

    Raises:
        ImportError: The package is not installed.
    """
    return package(
        *("h5py", "hdf5", "Files of Keras' formats are read and written by"),
        " `save_weights` needs no package for a file whose name ends in `.safetensors`.",
    )
