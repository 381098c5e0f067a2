"""Tensors on disk: written so that a crash leaves the old file or the new one, never a part.

All that a file holds is covered by checksums, and a file is checked whole before any of it is used.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mirrored._files import PathName, check_replaceable, replacing
from mirrored.errors import WeightsFileError

_FORMAT_KEY, _FORMAT = "format", "mirrored"
_KIND_KEY = "kind"
_CHECKSUMS_KEY = "crc32"
_HEADER_KEY = "header_crc32"
_OWN_KEYS = (_FORMAT_KEY, _KIND_KEY, _CHECKSUMS_KEY, _HEADER_KEY)
_DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "BOOL": "bool"}
_LISTED = 5  # Problems named in one error: enough to see the pattern, few enough to read.

Expected = Mapping[str, tuple[tuple[int, ...], Any]]
Specs = dict[str, tuple[tuple[int, ...], str]]


class Kind(NamedTuple):
    """What a file is for, so that none is taken for one of another kind.

    Attributes:
        mark: What the file itself says.
        noun: What messages call such a file.
        writer: What writes it.
        owner: Whose tensors it holds, as messages say.
    """

    mark: str
    noun: str
    writer: str
    owner: str


WEIGHTS = Kind("weights", "weights file", "`save_weights`", "model")
CHECKPOINT = Kind("checkpoint", "checkpoint", "`mr.train.Checkpoint.save`", "program")


def save_tensors(
    path: PathName,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
    *,
    kind: Kind = WEIGHTS,
) -> None:
    """Write named arrays to a safetensors file, wholly or not at all.

    The data goes to a temporary file in the same folder, reaches the disk, and then takes the place
    of the old file. Whatever fails, the old file stays as it was and no temporary file is left.

    Args:
        path: The file; a symbolic link is followed. An existing file's permissions are kept.
        tensors: Arrays by name, of dtype float32, float64, int32, int64 or bool and any shape.
        metadata: Texts to store in the header beside the checksums.
        kind: What the file is for.

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
    header = _header(arrays, metadata or {}, kind)
    target = check_replaceable(path, kind.noun)
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
        WeightsFileError: The file is truncated, corrupt, not in the safetensors format, a
            checkpoint, or of another model.

    Example:
        See `save_tensors`.
    """
    with _opened(path, WEIGHTS) as (name, file):
        specs = _specs(file)
        metadata = _checked_metadata(name, file, specs, WEIGHTS)
        raise_differences(name, differences(specs, expected, WEIGHTS), WEIGHTS)
        return _arrays(name, file, expected, metadata, WEIGHTS)


class Contents(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        tensors: The arrays by name, writable and independent of the file.
        metadata: The texts that were stored beside them.
    """

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]


def read_checkpoint(path: PathName) -> Contents:
    """Read all of a checkpoint, after checking all of the file.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, or no checkpoint.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from mirrored.training.weights_file import CHECKPOINT, read_checkpoint, save_tensors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_tensors(folder + "/c", {"b": np.ones(2)}, {"step": "3"}, kind=CHECKPOINT)
        ...     read_checkpoint(folder + "/c").metadata
        {'step': '3'}
    """
    with _opened(path, CHECKPOINT) as (name, file):
        specs = _specs(file)
        metadata = _checked_metadata(name, file, specs, CHECKPOINT)
        return Contents(_arrays(name, file, specs, metadata, CHECKPOINT), _texts(metadata))


def read_checkpoint_metadata(path: PathName) -> dict[str, str]:
    """Return the texts that are stored in a checkpoint, after checking its header alone.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        WeightsFileError: The header is truncated, corrupt, or that of no checkpoint.

    Example:
        See `read_checkpoint`.
    """
    with _opened(path, CHECKPOINT) as (name, file):
        return _texts(_checked_metadata(name, file, _specs(file), CHECKPOINT))


def differences(found: Specs, expected: Expected, kind: Kind) -> list[str]:
    """Return what is different between tensors that a file has and those that are wanted.

    Args:
        found: Shapes and dtypes by name, as the file has them.
        expected: Shapes and dtypes by name, as they are wanted.
        kind: What the file is for.

    Example:
        >>> from mirrored.training.weights_file import WEIGHTS, differences
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
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is of another {kind.owner}: "
            f"{'; '.join(problems[:_LISTED])}{more}. Build the {kind.owner} as it was when it was "
            "saved."
        )


# ---------------------------------------------------------------------------- writing


def _checked(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    if array.dtype.name not in _DTYPES.values():
        raise ValueError(
            f"Weights files hold {', '.join(_DTYPES.values())}. "
            f"Received: {name!r} with dtype {array.dtype}. Convert it first."
        )
    return array


def _header(
    arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str], kind: Kind
) -> dict[str, str]:
    for key, text in metadata.items():
        if key in _OWN_KEYS or not isinstance(text, str):
            raise ValueError(
                f"Metadata must be texts under keys other than {', '.join(map(repr, _OWN_KEYS))}. "
                f"Received: {key!r}: {text!r}."
            )
    checksums = {name: _checksum(array) for name, array in arrays.items()}
    header = {
        **metadata,
        _FORMAT_KEY: _FORMAT,
        _KIND_KEY: kind.mark,
        _CHECKSUMS_KEY: json.dumps(checksums),
    }
    specs = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    return {**header, _HEADER_KEY: _header_checksum(header, specs)}


def _checksum(array: np.ndarray) -> str:
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return f"{zlib.crc32(little_endian.reshape(-1).view(np.uint8).data):08x}"


def _header_checksum(metadata: Mapping[str, str], specs: Specs) -> str:
    """Return the checksum of all that the header says but this checksum."""
    texts = {key: text for key, text in metadata.items() if key != _HEADER_KEY}
    return f"{zlib.crc32(json.dumps([texts, specs], sort_keys=True).encode()):08x}"


# ---------------------------------------------------------------------------- reading


@contextlib.contextmanager
def _opened(path: PathName, kind: Kind) -> Iterator[tuple[str, Any]]:
    """Open a safetensors file; what its library finds wrong becomes our error."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is a folder. Pass the path of a file in it."
        )
    with open(name, "rb"):  # Absence and permissions are told in Python's own exceptions.
        pass
    try:
        with safe_open(name, framework="np") as file:
            yield name, file
    except SafetensorError as error:
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is truncated, corrupt, or not in the safetensors format "
            f"({error}). Received: {os.path.getsize(name)} bytes. A {kind.noun} is written by "
            f"{kind.writer}; restore the file from another copy."
        ) from error


def _specs(file: Any) -> Specs:
    """Return the shape and the dtype of each tensor, as the header has them."""
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping.
    return {
        name: (tuple(each.get_shape()), _DTYPES.get(each.get_dtype(), each.get_dtype()))
        for name, each in slices.items()
    }


def _checked_metadata(name: str, file: Any, specs: Specs, kind: Kind) -> dict[str, str]:
    """Return the metadata of a file, after checking that the header is as it was written."""
    metadata: dict[str, str] = file.metadata() or {}
    if _is_foreign(metadata):
        if kind is WEIGHTS:
            return {}
        raise WeightsFileError(
            f"The file {name!r} is no {kind.noun}: it does not say so. Pass the path that "
            f"{kind.writer} returned."
        )
    if metadata.get(_HEADER_KEY) != _header_checksum(metadata, specs):
        raise WeightsFileError(
            f"The {kind.noun} {name!r} is corrupt: the checksum of its header does not fit. "
            "Restore the file from another copy."
        )
    if metadata.get(_KIND_KEY) != kind.mark:
        raise WeightsFileError(
            f"The file {name!r} is no {kind.noun}. Received: a file of the kind "
            f"{metadata.get(_KIND_KEY)!r}. Weights are read by `load_weights`, checkpoints by "
            "`mr.train.Checkpoint.restore`."
        )
    return metadata


def _is_foreign(metadata: Mapping[str, str]) -> bool:
    """Whether another program wrote the file; no flipped bit takes away all marks of ours."""
    sums = (_CHECKSUMS_KEY, _HEADER_KEY)
    return metadata.get(_FORMAT_KEY) != _FORMAT and not any(key in metadata for key in sums)


def _arrays(
    name: str, file: Any, wanted: Mapping[str, Any], metadata: Mapping[str, str], kind: Kind
) -> dict[str, np.ndarray]:
    """Return arrays of a file, after checking each against its checksum where it has any."""
    arrays = {key: file.get_tensor(key) for key in wanted}
    if metadata:
        checksums = json.loads(metadata[_CHECKSUMS_KEY])
        for key, array in arrays.items():
            if checksums.get(key) != _checksum(array):
                raise WeightsFileError(
                    f"The {kind.noun} {name!r} is corrupt: the checksum of {key!r} does not fit "
                    "its data. Restore the file from another copy."
                )
    return arrays


def _texts(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in metadata.items() if key not in _OWN_KEYS}
