"""TensorFlow 1's `tf.gfile`: files and folders of this machine."""

import glob
import os
import shutil
from collections.abc import Sequence
from typing import Any

from mirrored.compat.v1.listing import list_names
from mirrored.errors import InvalidArgumentError


def Open(name: str, mode: str = "r") -> Any:
    """Open a file, and return it.

    Args:
        name: Its path.
        mode: As `open` takes it.
    """
    return open(name, mode)


GFile = FastGFile = Open


def Exists(filename: str) -> bool:
    """Return whether a file or a folder exists."""
    return os.path.exists(filename)


def IsDirectory(dirname: str) -> bool:
    """Return whether a path is a folder."""
    return os.path.isdir(dirname)


def ListDirectory(dirname: str) -> list[str]:
    """Return the names of the files and folders in a folder."""
    return os.listdir(dirname)


def Glob(filename: str | Sequence[str]) -> list[str]:
    """Return the paths that match a pattern, or one of several patterns."""
    patterns = [filename] if isinstance(filename, str) else filename
    return sorted(path for pattern in patterns for path in glob.glob(pattern))


def MakeDirs(dirname: str) -> None:
    """Create a folder and its missing parents."""
    os.makedirs(dirname, exist_ok=True)


def MkDir(dirname: str) -> None:
    """Create a folder."""
    os.mkdir(dirname)


def Remove(filename: str) -> None:
    """Remove a file."""
    os.remove(filename)


def DeleteRecursively(dirname: str) -> None:
    """Remove a folder and its contents."""
    shutil.rmtree(dirname)


def Copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        InvalidArgumentError: There is one of the new name, and it is not to be overwritten.
    """
    _check_free(newpath, overwrite)
    shutil.copyfile(oldpath, newpath)


def Rename(oldname: str, newname: str, overwrite: bool = False) -> None:
    """Rename a file or a folder.

    Raises:
        InvalidArgumentError: There is one of that name, and it is not to be overwritten.
    """
    _check_free(newname, overwrite)
    os.replace(oldname, newname)


def _check_free(name: str, overwrite: bool) -> None:
    if os.path.exists(name) and not overwrite:
        raise InvalidArgumentError(f"{name!r} is there already. Pass overwrite=True.")


list_names(__name__)
