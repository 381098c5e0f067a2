"""Names of files: as users give them to datasets that read files, and as patterns."""

import glob
import os
from collections.abc import Iterable
from typing import Any

from mirrored._files import as_path
from mirrored.data.transform import Slices
from mirrored.errors import InvalidArgumentError
from mirrored.ops.strings import StringTensor, as_strings


def names_of(value: Any, what: str) -> list[str]:
    """Return the names of files.

    Args:
        value: A path, a string of a dataset's element, or several in a list.
        what: The argument's name.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, StringTensor):
        return [os.fsdecode(name) for name in value._array.ravel()]
    if isinstance(value, bytes | str | os.PathLike):
        return [os.fsdecode(value)]
    if isinstance(value, Iterable):
        return [name for item in value for name in names_of(item, what)]
    raise TypeError(
        f"`{what}` must be a `mr.data.Dataset` of strings, or a path or a list of paths. Received: "
        f"{value!r:.200}."
    )


def matching(patterns: Any) -> list[str]:
    """Return the files that match any of some patterns, sorted.

    Raises:
        InvalidArgumentError: There is none.
    """
    wanted = [as_path(pattern, "file") for pattern in names_of(patterns, "file_pattern")]
    names = sorted({name for path in wanted for name in glob.glob(path, include_hidden=True)})
    if not names:
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(wanted)}")
    return names


def rows_of_names(names: list[str]) -> Slices:
    """Return the names of files as strings, one per element."""
    return Slices(as_strings([os.fsencode(name) for name in names]), len(names))
