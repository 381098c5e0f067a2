"""Tensors on disk: written so that a crash leaves the old file or the new one, never a part.

All that a file holds is covered by checksums, and what is wanted of a file is checked before any of
it is used. Tensors are written one by one: a large model needs no second copy of itself.
"""

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mirrored._files import PathName, as_path, replacing, special_kind
from mirrored.errors import WeightsFileError
from mirrored.training.weights_header import (
    NO_CHECKSUM,
    WEIGHTS,
    Header,
    Kind,
    Specs,
    checked_spec,
    checked_texts,
    header_bytes,
    in_file_order,
    read_header,
)

_LISTED = 5  # Problems named in one error: enough to see the pattern, few enough to read.
_LONGEST = 300  # Letters of one of them: whoever made a file may have made up long names.

Expected = Mapping[str, tuple[tuple[int, ...], Any]]


class Source(Protocol):
    """A tensor to be written that is read when its turn comes, as a variable is."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""

    def numpy(self) -> Any:
        """Return the values, as an array or a scalar of the host."""


def save_tensors(
    path: PathName,
    tensors: Mapping[str, np.ndarray | Source],
    metadata: Mapping[str, str] | None = None,
    *,
    kind: Kind = WEIGHTS,
) -> None:
    """Write named arrays to a safetensors file, wholly or not at all.

    The data goes to a temporary file in the same folder, reaches the disk, and then takes the place
    of the old file. Whatever fails, the old file stays as it was and no temporary file is left.

    Args:
        path: The file; a symbolic link is followed. An existing file's permissions are kept.
        tensors: Arrays by name, or what is read as one when its turn comes; of a dtype that
            variables have but for bfloat16, and any shape.
        metadata: Texts to store in the header beside the checksums.
        kind: What the file is for.

    Raises:
        TypeError: `path` is no path.
        ValueError: An array's dtype, or a key of the metadata, is not for this file.
        OSError: The file cannot be written: no such folder, no permission, no space, or what is
            there is no file, such as a device.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from mirrored.training.weights_file import load_tensors, save_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_tensors(folder + "/w", {"bias": np.ones(2)})
        ...     load_tensors(folder + "/w", {"bias": ((2,), "float64")})
        {'bias': array([1., 1.])}
    """
    specs = {name: checked_spec(name, each) for name, each in tensors.items()}
    texts = checked_texts(metadata or {}, kind)
    checksums = dict.fromkeys(specs, NO_CHECKSUM)
    with replacing(path, kind.noun) as file:
        file.write(header_bytes(specs, texts, checksums))
        for name in in_file_order(specs):
            checksums[name] = _write(file, tensors[name])
        file.seek(0)
        file.write(header_bytes(specs, texts, checksums))


def load_tensors(path: PathName, expected: Expected) -> dict[str, np.ndarray]:
    """Read the arrays that a model expects, after checking all of the file.

    Files that other programs wrote are read too, as long as names, shapes and dtypes agree; only
    they have no checksums.

    Args:
        path: The file.
        expected: The shape and the dtype of each array by name.

    Returns:
        The arrays by name, in the order expected, writable and independent of the file.

    Raises:
        TypeError: `path` is no path.
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, not in the safetensors format, a
            checkpoint, or of another model.

    Example:
        See `save_tensors`.
    """
    with open_tensors(path, WEIGHTS) as file:
        raise_differences(file.name, differences(file.specs, expected, WEIGHTS), WEIGHTS)
        return file.read(expected)


class OpenFile:
    """A file of tensors whose header was read and found to be as it was written.

    Args:
        name: What messages call it.
        file: The file, as safetensors opened it.
        kind: What it is for.

    Attributes:
        name: What messages call it.
        specs: The tensors' shapes and dtypes by name.
        texts: The texts that are stored beside them.
    """

    def __init__(self, name: str, file: Any, kind: Kind) -> None:
        header: Header = read_header(name, file, kind)
        self.name = name
        self.specs = header.specs
        self.texts = header.texts
        self._checksums = header.checksums
        self._file = file
        self._kind = kind

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return tensors by name, writable and independent of the file.

        Args:
            names: Their names.

        Raises:
            WeightsFileError: The data of one is not as it was written.
        """
        arrays: dict[str, np.ndarray] = {key: self._file.get_tensor(key) for key in names}
        if self._checksums is not None:
            for key, array in arrays.items():
                if self._checksums.get(key) != _checksum(_bytes(array)):
                    raise WeightsFileError(
                        f"The {self._kind.noun} {self.name!r} is corrupt: the checksum of {key!r} "
                        "does not fit its data. Restore the file from another copy."
                    )
        return arrays


@contextlib.contextmanager
def open_tensors(path: PathName, kind: Kind) -> Iterator[OpenFile]:
    """Open a file of tensors, and check its header.

    Args:
        path: The file.
        kind: What it is for.

    Raises:
        TypeError: `path` is no path.
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, or for something else.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from mirrored.training.weights_file import open_tensors, save_tensors
        >>> from mirrored.training.weights_header import CHECKPOINT
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_tensors(folder + "/c", {"b": np.ones(2)}, {"step": "3"}, kind=CHECKPOINT)
        ...     with open_tensors(folder + "/c", CHECKPOINT) as file:
        ...         file.specs, file.texts
        ({'b': ((2,), 'float64')}, {'step': '3'})
    """
    name = as_path(path, kind.noun)
    special = special_kind(name)
    if special is not None:  # To open a FIFO might wait for ever.
        where = "a file in it" if special == "a folder" else "a file"
        raise WeightsFileError(f"The {kind.noun} {name!r} is {special}. Pass the path of {where}.")
    with open(name, "rb"):  # Absence and permissions are told in Python's own exceptions.
        pass
    try:
        with safe_open(name, framework="np") as file:
            yield OpenFile(name, file, kind)
    except SafetensorError as error:  # What its library finds wrong becomes our error.
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is truncated, corrupt, or not in the safetensors format "
            f"({error!s:.200}). Received: {os.path.getsize(name)} bytes. A {kind.noun} is written "
            f"by {kind.writer}; restore the file from another copy."
        ) from error


def differences(found: Specs, expected: Expected, kind: Kind) -> list[str]:
    """Return what is different between tensors that a file has and those that are wanted.

    Args:
        found: Shapes and dtypes by name, as the file has them.
        expected: Shapes and dtypes by name, as they are wanted.
        kind: What the file is for.

    Example:
        >>> from mirrored.training.weights_file import differences
        >>> from mirrored.training.weights_header import WEIGHTS
        >>> differences({"b": ((2,), "int32")}, {"b": ((3,), "int32")}, WEIGHTS)
        ["'b' has shape (2,), the model's has (3,)"]
    """
    problems = [f"no {key!r}" for key in expected if key not in found]
    problems += [f"unexpected {key!r}" for key in sorted(found) if key not in expected]
    for key in found.keys() & expected.keys():
        (shape, dtype), (wanted, wanted_dtype) = found[key], expected[key]
        if shape != tuple(wanted):
            problems.append(f"{key!r} has shape {shape}, the {kind.owner}'s has {tuple(wanted)}")
        if dtype != np.dtype(wanted_dtype).name:
            problems.append(f"{key!r} is {dtype}, the {kind.owner}'s is {np.dtype(wanted_dtype)}")
    return problems


def raise_differences(name: str, problems: Sequence[str], kind: Kind) -> None:
    """Raise WeightsFileError where a file has other tensors than are wanted.

    Args:
        name: The file.
        problems: What is different.
        kind: What the file is for.
    """
    if problems:
        listed = "; ".join(each[:_LONGEST] for each in problems[:_LISTED])
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is of another {kind.owner}: {listed}{more}. Build the "
            f"{kind.owner} as it was when it was saved."
        )


def _write(file: IO[bytes], tensor: np.ndarray | Source) -> str:
    """Write a tensor's data and return their checksum; nothing of them is left in memory."""
    data = _bytes(tensor)
    file.write(data.data)
    return _checksum(data)


def _bytes(tensor: np.ndarray | Source) -> NDArray[np.uint8]:
    """Return the values in the order of the file: rows first, little-endian."""
    array = np.asarray(tensor if isinstance(tensor, np.ndarray) else tensor.numpy(), order="C")
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return little_endian.reshape(-1).view(np.uint8)


def _checksum(data: NDArray[np.uint8]) -> str:
    return f"{zlib.crc32(data.data):08x}"
