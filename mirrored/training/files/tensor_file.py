"""Tensors on disk: written so that a crash leaves the old file or the new one, never a part.

All that a file holds is covered by checksums, and what is wanted of a file is checked before any of
it is used: whoever made it may have made up what it says. Tensors are written one by one, so a
large model needs no second copy of itself.
"""

import contextlib
import json
import math
import os
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mirrored._contexts import Within
from mirrored._files import as_path, save_in_thread, saving, settle, wait_for_save
from mirrored._types import PathLike
from mirrored.errors import WeightsFileError
from mirrored.ops.tensor import copy_to_host
from mirrored.program.variable_access import variable_writes
from mirrored.training.files.tensor_tree import (
    Expected,
    Spec,
    Specs,
    checksum,
    damaged,
    differences,
    little_endian,
    opened,
    raise_differences,
)
from mirrored.variables import Variable

_FORMAT_KEY, _FORMAT = "format", "mirrored"
_KIND_KEY = "kind"
_CHECKSUMS_KEY = "crc32"
_HEADER_KEY = "header_crc32"
_OWN_KEYS = (_FORMAT_KEY, _KIND_KEY, _CHECKSUMS_KEY, _HEADER_KEY)
_METADATA = "__metadata__"  # Where the format has them, among the names of tensors.
_DTYPES = {
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
}
_CODES = {name: code for code, name in _DTYPES.items()}

# In the place of a tensor's checksum until that is known; as long as any.
NO_CHECKSUM = "0" * 8


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


# ---------------------------------------------------------------------------- the header, writing


def checked_spec(name: str, tensor: Any) -> Spec:
    """Return shape and dtype of a tensor, after checking that files hold it.

    Raises:
        ValueError: No file holds that dtype.
    """
    if tensor.dtype.name not in _CODES:
        raise ValueError(
            f"Weights files hold {', '.join(_CODES)}. "
            f"Received: {name!r} with dtype {tensor.dtype}. Convert it first."
        )
    return tuple(tensor.shape), tensor.dtype.name


def in_file_order(specs: Specs) -> list[str]:
    """Return the tensors' names, those of wide elements first: so each tensor is aligned."""
    return sorted(specs, key=lambda name: (-np.dtype(specs[name][1]).itemsize, name))


def header_bytes(specs: Specs, texts: Mapping[str, str], checksums: Mapping[str, str]) -> bytes:
    """Return the beginning of a file, whose length does not depend on the checksums."""
    texts = {**texts, _CHECKSUMS_KEY: json.dumps(checksums)}
    texts[_HEADER_KEY] = _header_checksum(texts, specs)
    header: dict[str, Any] = {_METADATA: texts}
    start = 0
    for name in in_file_order(specs):
        shape, dtype = specs[name]
        stop = start + math.prod(shape) * np.dtype(dtype).itemsize
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": (start, stop)}
        start = stop
    data = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    data += b" " * (-len(data) % 8)
    return len(data).to_bytes(8, "little") + data


def _header_checksum(metadata: Mapping[str, str], specs: Specs) -> str:
    """Return the checksum of all that the header says but this checksum."""
    texts = {key: text for key, text in metadata.items() if key != _HEADER_KEY}
    return f"{zlib.crc32(json.dumps([texts, specs], sort_keys=True).encode()):08x}"


# ---------------------------------------------------------------------------- the header, reading


def _is_foreign(metadata: Mapping[str, str]) -> bool:
    """Whether another program wrote the file; no flipped bit takes away all marks of ours."""
    sums = (_CHECKSUMS_KEY, _HEADER_KEY)
    return metadata.get(_FORMAT_KEY) != _FORMAT and not any(key in metadata for key in sums)


def read_table(noun: str, text: str, content: str) -> dict[str, Any]:
    """Return the table that a text of the header holds.

    Raises:
        WeightsFileError: It is no such text.
    """
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise damaged(noun, f"corrupt: it has no {content}")
    return table


# ---------------------------------------------------------------------------- asynchronous saves


class HostCopies:
    """Copies of values in memory of the host, which is allocated once and used again.

    Attributes:
        undo: Called before an error of the thread that writes them is raised.
    """

    def __init__(self) -> None:
        self._copies: dict[str, NDArray[Any]] = {}
        self.undo: Callable[[], object] = lambda: None

    def __reduce__(self) -> Any:
        return HostCopies, ()  # The memory is not for another one.

    @contextlib.contextmanager
    def in_thread(self, undo: Callable[[], object]) -> Iterator[None]:
        """Within this context a thread writes the file that a function of saving is called for.

        Args:
            undo: Called before an error of the thread is raised.
        """
        with variable_writes:
            settle()
            self.undo = undo
            with Within(_copies_for_thread, self):
                yield

    def of(self, values: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return copies of values by name; they stay as they are until the next call.

        Args:
            values: Variables, and what NumPy makes arrays of, by name.
        """
        before, self._copies = self._copies, {}
        for name, value in values.items():
            source = value._view() if isinstance(value, Variable) else np.asarray(value)
            copy = before.get(name)
            if copy is None or (copy.shape, copy.dtype) != (source.shape, source.dtype):
                copy = np.empty(tuple(source.shape), source.dtype)
            if isinstance(source, np.ndarray):
                np.copyto(copy, source)
            else:
                copy_to_host(source, copy)
            self._copies[name] = copy
        return self._copies


_copies_for_thread: ContextVar[HostCopies | None] = ContextVar(
    "mirrored_copies_for_thread", default=None
)

# Returns what values are copied to for a thread; None: the caller writes the file.
copies_for_thread: Callable[[], HostCopies | None] = _copies_for_thread.get


def write_file(path: PathLike, what: str, write: Callable[[], object]) -> None:
    """Write a file after those that a thread writes, or let a thread write it.

    Args:
        path: The file.
        what: What messages call it.
        write: Writes it.
    """
    copies = copies_for_thread()
    if copies is None:
        wait_for_save()
        write()
    else:
        save_in_thread(path, what, write, copies.undo)


# ---------------------------------------------------------------------------- files


def save_tensors(
    path: PathLike,
    tensors: Mapping[str, np.ndarray | Variable],
    metadata: Mapping[str, str] | None = None,
    *,
    kind: Kind = WEIGHTS,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Write named arrays to a safetensors file, wholly or not at all.

    The data goes to a temporary file in the same folder, reaches the disk, and then takes the place
    of the old file. Whatever fails, the old file stays as it was and no temporary file is left.

    Args:
        path: The file.
        tensors: Arrays and variables by name.
        metadata: Texts that are stored beside them, with keys other than the file's own.
        kind: What the file is for.
        after: Called when the file is there.

    Raises:
        TypeError: `path` is no path.
        ValueError: An array's dtype is not for this file.
        OSError: The file cannot be written: no such folder, no permission, no space, or what is
            there is no file, such as a device.
    """
    specs = {name: checked_spec(name, tensor) for name, tensor in tensors.items()}
    texts = {**(metadata or {}), _FORMAT_KEY: _FORMAT, _KIND_KEY: kind.mark}
    checksums = dict.fromkeys(specs, NO_CHECKSUM)
    copies = copies_for_thread()
    values = tensors if copies is None else copies.of(tensors)

    def write() -> None:
        with saving(path, kind.noun) as file:
            file.write(header_bytes(specs, texts, checksums))
            for name in in_file_order(specs):
                checksums[name] = _write(file, values[name])
            file.seek(0)
            file.write(header_bytes(specs, texts, checksums))
        after()

    write_file(path, kind.noun, write)


def load_tensors(
    path: PathLike, expected: Expected
) -> Generator[tuple[str, np.ndarray], None, None]:
    """Read the arrays that a model expects, one after the other.

    Files that other programs wrote are read too, as long as names, shapes and dtypes agree; only
    they have no checksums.

    Yields:
        Names and arrays, in the order expected, writable and independent of the file. None of them
        counts before the last one is there: it may be then that a file is found to be corrupt.

    Raises:
        TypeError: `path` is no path.
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, not in the safetensors format, a
            checkpoint, or of another model.
    """
    with open_tensors(path, WEIGHTS) as file:
        problems = differences(file.specs, expected, WEIGHTS.owner)
        raise_differences(file.noun, problems, WEIGHTS.owner)
        yield from file.read(expected)


class OpenFile:
    """A file of tensors whose header was read and found to be as it was written.

    Attributes:
        name: Its path.
        noun: What messages call it.
        specs: The tensors' shapes and dtypes by name.
        texts: The texts that are stored beside them.
    """

    def __init__(self, name: str, file: Any, kind: Kind) -> None:
        self.name = name
        self.noun = f"The {kind.noun} {name!r}"
        self.texts: dict[str, str] = {}
        self._file = file
        self._checksums: Mapping[str, Any] | None = None  # None: another program wrote the file.
        slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - no mapping.
        self.specs: Specs = {
            key: (tuple(tensor.get_shape()), _DTYPES.get(tensor.get_dtype(), tensor.get_dtype()))
            for key, tensor in slices.items()
        }
        metadata: dict[str, str] = file.metadata() or {}
        if not _is_foreign(metadata):
            self._check(metadata, kind)
            self.texts = {key: text for key, text in metadata.items() if key not in _OWN_KEYS}
            text = metadata.get(_CHECKSUMS_KEY, "")
            self._checksums = read_table(self.noun, text, "checksums of its data")
        elif kind is not WEIGHTS:
            raise WeightsFileError(
                f"The file {name!r} is no {kind.noun}: it has no mark of that kind. Pass the path "
                f"that {kind.writer} returned."
            )

    def _check(self, metadata: Mapping[str, str], kind: Kind) -> None:
        """Raise WeightsFileError where the header is corrupt, or the file is for something else."""
        if metadata.get(_HEADER_KEY) != _header_checksum(metadata, self.specs):
            raise damaged(self.noun, "corrupt: the checksum of its header does not fit")
        if metadata.get(_KIND_KEY) != kind.mark:
            raise WeightsFileError(
                f"The file {self.name!r} is no {kind.noun}. Received: a file of the kind "
                f"{metadata.get(_KIND_KEY)!r}. Read weights with `load_weights`, and checkpoints "
                "with `mr.train.Checkpoint.restore`."
            )

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield tensors with their names, writable and independent of the file.

        Raises:
            WeightsFileError: The data of one is not as it was written.
        """
        for key in names:
            array = self._file.get_tensor(key)
            sums = self._checksums
            if sums is not None and sums.get(key) != f"{checksum(array):08x}":
                raise damaged(self.noun, f"corrupt: the checksum of {key!r} does not fit its data")
            yield key, array


@contextlib.contextmanager
def open_tensors(path: PathLike, kind: Kind) -> Iterator[OpenFile]:
    """Open a file of tensors, and check its header.

    Raises:
        TypeError: `path` is no path.
        FileNotFoundError: There is no such file.
        WeightsFileError: The file is truncated, corrupt, or for something else.
    """
    name = as_path(path, kind.noun)
    with opened(name, kind.noun):  # Absence and permissions raise Python's own exceptions.
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


def _write(file: IO[bytes], tensor: np.ndarray | Variable) -> str:
    """Write a tensor's data and return their checksum; nothing of them is left in memory."""
    array = tensor if isinstance(tensor, np.ndarray) else tensor.numpy()
    file.write(little_endian(array).data)
    return f"{checksum(array):08x}"
