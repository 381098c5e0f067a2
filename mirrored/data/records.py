"""TFRecord files: bytes one after another, each with its length and masked CRC-32C checksums.

Files may be compressed as a whole. The checksums are computed by the package google-crc32c where it
is installed, which is much faster.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import IO, Any, Self

import numpy as np

from mirrored._arguments import explained
from mirrored._files import as_path
from mirrored._types import PathLike
from mirrored.data.dataset import Dataset
from mirrored.data.elements import DatasetBase, Elements, as_count
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.rng import Iteration
from mirrored.data.source_transforms import names_of, rows_of_names
from mirrored.data.transform import Transform
from mirrored.errors import DataLossError, InvalidArgumentError
from mirrored.ops.strings import StringTensor, as_strings

_POLYNOMIAL = 0x82F63B78
_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
_COMPRESSIONS = ("", "GZIP", "ZLIB")


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _checksum() -> Callable[[bytes], int]:
    """Return what computes the checksum of bytes as files have it."""
    try:
        from google_crc32c import value
    except ImportError:
        value = _crc32c

    def masked(data: bytes) -> int:
        crc: int = value(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    return masked


def compression_of(value: Any) -> str:
    """Return a compression by its name.

    Raises:
        InvalidArgumentError: There is no such compression.
    """
    name = "" if value is None or value == "NONE" else value
    if isinstance(name, StringTensor):
        name = name.numpy().decode()
    if name not in _COMPRESSIONS:
        raise InvalidArgumentError(
            f"Unsupported compression type: {value!r:.200}. It must be one of {_COMPRESSIONS}."
        )
    return str(name)


@explained
class TFRecordOptions:
    """How a TFRecord file is written.

    Args:
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        flush_mode: Accepted, as are the others but for the level: zlib has its defaults.
        input_buffer_size: Accepted.
        output_buffer_size: Accepted.
        window_bits: Accepted.
        compression_level: From 0 to 9; None: the default.
        compression_method: Accepted.
        mem_level: Accepted.
        compression_strategy: Accepted.

    Raises:
        InvalidArgumentError: There is no such compression.
    """

    def __init__(
        self,
        compression_type: str | None = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = compression_of(compression_type)
        self.compression_level = compression_level


@explained
class TFRecordWriter:
    """Writes records to a new TFRecord file.

    Args:
        path: The file.
        options: Its `TFRecordOptions`, or the name of a compression.

    Raises:
        TypeError: The path is none.
        OSError: The file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.tfrecord"
        >>> with mr.io.TFRecordWriter(path) as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> [record.numpy() for record in mr.data.TFRecordDataset(path)]
        [b'one', b'two']
    """

    def __init__(self, path: PathLike, options: Any = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        name = as_path(path, "TFRecord file")
        level = -1 if options.compression_level is None else options.compression_level
        self._checksum = _checksum()
        self._file: Any = None
        self._deflate: Any = None
        if options.compression_type == "GZIP":
            self._file = gzip.GzipFile(name, "wb", 9 if level < 0 else level)
            return
        self._file = open(name, "wb")  # noqa: SIM115
        if options.compression_type == "ZLIB":
            self._deflate = zlib.compressobj(level)

    def write(self, record: str | bytes | StringTensor) -> None:
        """Write a record.

        Args:
            record: Bytes, as `Example.SerializeToString()` returns them.

        Raises:
            TypeError: It is no bytes.
            ValueError: The file is closed.
        """
        data = record.numpy() if isinstance(record, StringTensor) else record
        data = data.encode() if isinstance(data, str) else data
        if not isinstance(data, bytes):
            raise TypeError(
                f"A record must be bytes. Received: a {type(record).__name__}. Pass the result of "
                "`example.SerializeToString()`."
            )
        length = _LENGTH.pack(len(data))
        parts = (length, _SUM.pack(self._checksum(length)), data, _SUM.pack(self._checksum(data)))
        for part in parts:
            self._file.write(part if self._deflate is None else self._deflate.compress(part))

    def flush(self) -> None:
        """Write what is buffered to the file."""
        if self._deflate is not None:
            self._file.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and not self._file.closed:
            if self._deflate is not None:
                self._file.write(self._deflate.flush())
            self._file.close()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self.close()

    def __del__(self) -> None:
        self.close()


def records_in(path: str, compression: str) -> Generator[bytes, None, None]:
    """Yield the records of a file.

    Args:
        path: The file.
        compression: One that `compression_of` returned.

    Raises:
        DataLossError: The file is damaged.
    """
    with _opened(path, compression) as file:
        reader = _Reader(file, path)
        while length := reader.read(_LENGTH.size):
            reader.check(length)
            (size,) = _LENGTH.unpack(length)
            data = reader.read(size)
            if len(data) < size:
                raise reader.error("truncated record")
            reader.check(data)
            yield data
            reader.place += 16 + size


def _opened(path: str, compression: str) -> Any:
    if compression == "GZIP":
        return gzip.open(path, "rb")
    file = open(path, "rb")  # noqa: SIM115
    return _Inflated(file) if compression == "ZLIB" else file


class _Inflated:
    """A file that zlib has compressed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._inflate, self._ahead = file, zlib.decompressobj(), b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return a number of bytes, or all if there are fewer."""
        while len(self._ahead) < size:
            part = self._file.read(1 << 16)
            if not part:
                break
            self._ahead += self._inflate.decompress(part)
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data


class _Reader:
    """Reads the parts of records, and says of errors where they are."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path, self._checksum = file, path, _checksum()
        self.place = 0

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._file.read(min(size, 1 << 62))
        except (EOFError, zlib.error, gzip.BadGzipFile, OverflowError, MemoryError) as error:
            raise self.error(str(error)) from error
        return data

    def check(self, data: bytes) -> None:
        """Raise unless the checksum that follows is that of some bytes."""
        stored = self.read(_SUM.size)
        if len(stored) < _SUM.size:
            raise self.error("truncated record")
        if _SUM.unpack(stored)[0] != self._checksum(data):
            raise self.error("corrupted record")

    def error(self, why: str) -> DataLossError:
        return DataLossError(
            f"{why} at {self.place} in {self._path!r}. Create the file again; if it is "
            "compressed, pass `compression_type`."
        )


class Records(Transform):
    """The records of some files, one file after another, as strings.

    Args:
        names: The files.
        compression: How they are compressed.
    """

    def __init__(self, names: Sequence[str], compression: str) -> None:
        self._names, self._compression = names, compression
        self.declare(LeafSpec((), np.dtype(object)))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of scalars."""
        for name in self._names:
            with closing(records_in(name, self._compression)) as records:
                for record in records:
                    yield as_strings([record])[0, ...]


class TFRecordDataset(Dataset[StringTensor]):
    """The records of TFRecord files, as strings that `io.parse_single_example` takes.

    Args:
        filenames: A file, several in a list, or a dataset of their names.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        buffer_size: Accepted; files have Python's buffers.
        num_parallel_reads: How many files records come from alternately; None: one file after
            another.
        name: Accepted for compatibility.

    Raises:
        TypeError: The names are none.
        InvalidArgumentError: There is no such compression.

    Example:
        >>> import mirrored as mr
        >>> mr.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"]).element_spec.shape
        ()
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression = compression_of(compression_type)
        files, is_dataset = filenames, isinstance(filenames, DatasetBase)

        def opened(names: Any) -> Any:
            return Dataset(Records(names_of(names, "filenames"), compression))

        if num_parallel_reads is None:
            records = files.flat_map(opened) if is_dataset else opened(files)
        else:
            if not is_dataset:
                files = Dataset(rows_of_names(names_of(filenames, "filenames")))
            count = as_count("num_parallel_reads", num_parallel_reads, least=-1)
            records = files.interleave(opened, None if count < 1 else count)
        super().__init__(records._transform)
