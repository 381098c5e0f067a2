"""Weights on disk: written so that a crash leaves the old file or the new one, never a part.

Each tensor carries a checksum, and a file is checked whole before any of it is used.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mirrored._files import PathName, check_replaceable, replacing
from mirrored.errors import WeightsFileError

# Two marks, so that no single flipped bit turns our file into one of another program, which would
# have no checksums to hold.
_FORMAT_KEY, _FORMAT = "format", "mirrored"
_CHECKSUMS_KEY = "crc32"
_DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "BOOL": "bool"}
_LISTED = 5  # Problems named in one error: enough to see the pattern, few enough to read.

Expected = Mapping[str, tuple[tuple[int, ...], Any]]


def save_tensors(
    path: PathName, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays to a safetensors file, wholly or not at all.

    The data goes to a temporary file in the same folder, reaches the disk, and then takes the place
    of the old file. Whatever fails, the old file stays as it was and no temporary file is left.

    Args:
        path: The file; a symbolic link is followed. An existing file's permissions are kept.
        tensors: Arrays by name, of dtype float32, float64, int32, int64 or bool and any shape.
        metadata: Texts to store in the header beside the checksums.

    Raises:
        ValueError: An array's dtype, or a key of the metadata, is not for this file.
        OSError: The file cannot be written: no such folder, no permission, no space.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from mirrored.training.weights_file import load_tensors, save_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_tensors(folder + "/w", {"bias": np.ones(2)})
        ...     load_tensors(folder + "/w", {"bias": ((2,), "float64")})
        {'bias': array([1., 1.])}
    """
    arrays = {name: _checked(name, array) for name, array in tensors.items()}
    header = _header(arrays, metadata or {})
    target = check_replaceable(path, "weights file")
    with replacing(target) as file:
        file.write(save(arrays, metadata=header))


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
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, not in the safetensors format, or of
            another model.

    Example:
        See `save_tensors`.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        raise WeightsFileError(
            f"The weights file {name!r} is a folder. Pass the path of a file in it."
        )
    with open(name, "rb"):  # Absence and permissions are told in Python's own exceptions.
        pass
    with _opened(name) as file:
        _check_model(name, file, expected)
        checksums = _checksums(name, file.metadata() or {})
        arrays = {key: file.get_tensor(key) for key in expected}
    if checksums is not None:
        for key, array in arrays.items():
            if checksums.get(key) != _checksum(array):
                raise WeightsFileError(
                    f"The weights file {name!r} is corrupt: the checksum of {key!r} does not fit "
                    "its data. Restore the file from another copy."
                )
    return arrays


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    if array.dtype.name not in _DTYPES.values():
        raise ValueError(
            f"Weights files hold {', '.join(_DTYPES.values())}. "
            f"Received: {name!r} with dtype {array.dtype}. Convert it first."
        )
    return array


def _header(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, str]:
    for key, text in metadata.items():
        if key in (_FORMAT_KEY, _CHECKSUMS_KEY) or not isinstance(text, str):
            raise ValueError(
                "Metadata must be texts under keys other than "
                f"{_FORMAT_KEY!r} and {_CHECKSUMS_KEY!r}. Received: {key!r}: {text!r}."
            )
    checksums = {name: _checksum(array) for name, array in arrays.items()}
    return {**metadata, _FORMAT_KEY: _FORMAT, _CHECKSUMS_KEY: json.dumps(checksums)}


def _checksum(array: np.ndarray) -> str:
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return f"{zlib.crc32(little_endian.reshape(-1).view(np.uint8).data):08x}"


@contextlib.contextmanager
def _opened(name: str) -> Iterator[Any]:
    """Open a safetensors file; what its library finds wrong becomes our error."""
    try:
        with safe_open(name, framework="np") as file:
            yield file
    except SafetensorError as error:
        raise WeightsFileError(
            f"The weights file {name!r} is truncated, corrupt, or not in the safetensors format "
            f"({error}). Received: {os.path.getsize(name)} bytes. Weights are written by "
            "`save_weights`; restore the file from another copy."
        ) from error


def _check_model(name: str, file: Any, expected: Expected) -> None:
    found = set(file.keys())
    problems = [f"no {key!r}" for key in expected if key not in found]
    problems += [f"unexpected {key!r}" for key in sorted(found) if key not in expected]
    for key in found.intersection(expected):
        shape, dtype = expected[key]
        tensor = file.get_slice(key)
        received = tuple(tensor.get_shape())
        if received != tuple(shape):
            problems.append(f"{key!r} has shape {received}, the model's has {tuple(shape)}")
        received_dtype = _DTYPES.get(tensor.get_dtype(), tensor.get_dtype())
        if received_dtype != np.dtype(dtype).name:
            problems.append(f"{key!r} is {received_dtype}, the model's is {np.dtype(dtype).name}")
    if problems:
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsFileError(
            f"The weights file {name!r} is of another model: "
            f"{'; '.join(problems[:_LISTED])}{more}. Build the model as it was when it was saved."
        )


def _checksums(name: str, metadata: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the checksums by tensor, or None for a file that another program wrote."""
    if _CHECKSUMS_KEY not in metadata and metadata.get(_FORMAT_KEY) != _FORMAT:
        return None
    try:
        checksums = json.loads(metadata.get(_CHECKSUMS_KEY, ""))
    except ValueError:
        checksums = None
    if not isinstance(checksums, dict):
        raise WeightsFileError(
            f"The weights file {name!r} is corrupt: its checksums cannot be read. "
            "Restore the file from another copy."
        )
    return checksums
