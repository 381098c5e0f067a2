"""Files of events as TensorBoard reads them: records with checksums, each a message of numbers.

The messages are TensorFlow's `Event`, `Summary` and `TensorProto`, encoded as Protocol Buffers are;
the checksums are CRC-32C (RFC 3720). So few fields need no library.
"""

import os
import struct
import threading
import time
import weakref
from collections.abc import Iterable
from functools import cache
from itertools import count
from typing import Any, BinaryIO

import numpy as np

_POLYNOMIAL = 0x82F63B78  # CRC-32C's, its bits in the opposite order.
_MASK = 0xA282EAD8  # What TFRecord files add to a checksum.
_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # TensorFlow's numbers for dtypes.
_numbers = count()


@cache
def _table() -> tuple[int, ...]:
    """Return the checksum of each byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def checksum(data: bytes) -> bytes:
    """Return the masked checksum of bytes, as records have it.

    Args:
        data: The bytes.

    Example:
        >>> checksum(b"123456789").hex()  # Of 0xE3069283, which RFC 3720's polynomial gives.
        'e5b08ac7'
    """
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes((*parts, value))


def _field(number: int, value: bytes | int) -> bytes:
    """Return a field of a message: bytes behind their length, or an integer."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _tensor(array: np.ndarray[Any, Any]) -> bytes:
    """Return an array of floats, or of text, as a `TensorProto`."""
    sizes = b"".join(_field(2, _field(1, size)) for size in array.shape)
    if array.dtype.kind == "O":
        texts = b"".join(_field(8, each) for each in array.ravel())
        return _field(1, _STRING) + _field(2, sizes) + texts
    kind = _FLOAT if array.dtype == np.float32 else _DOUBLE
    return _field(1, kind) + _field(2, sizes) + _field(4, array.tobytes())


def summary(tag: str, array: np.ndarray[Any, Any], plugin: str, description: str | None) -> bytes:
    """Return a `Summary` of one value.

    Args:
        tag: What it is called.
        array: The value: float32, float64, or bytes as objects.
        plugin: Which part of TensorBoard shows it.
        description: What that says of it.
    """
    kind = 1 if plugin == "scalars" else 2
    said = b"" if description is None else _field(3, description.encode())
    metadata = _field(1, _field(1, plugin.encode())) + said + _field(4, kind)
    value = _field(1, tag.encode()) + _field(9, metadata) + _field(8, _tensor(array))
    return _field(1, value)


class EventFile:
    """A file that events are written to, in the order of the calls.

    Args:
        folder: Where it is; made where it is not there.
        most: After how many events the file is written.
        seconds: After how many seconds it is at the latest, when an event comes.
        suffix: What its name ends with.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: str, most: int, seconds: float, suffix: str) -> None:
        import socket  # Few programs need it.

        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.path = os.path.join(folder, f"{name}.{next(_numbers)}{suffix}")
        self._file: BinaryIO = open(self.path, "xb")  # noqa: SIM115 - Closed by its owner.
        self._most, self._seconds = most, seconds
        self._waiting, self._flushed = 0, time.monotonic()
        self._lock = threading.Lock()
        self._closing = weakref.finalize(self, self._file.close)
        self._write(_field(3, b"brain.Event:2"))
        self.flush()

    @property
    def closed(self) -> bool:
        """Whether it takes no more events."""
        return self._file.closed

    def add(self, step: int, values: Iterable[bytes]) -> None:
        """Write the summaries of a step.

        Args:
            step: The step.
            values: The summaries.
        """
        with self._lock:
            for value in values:
                self._write(_field(2, step) + _field(5, value))
                self._waiting += 1
            late = time.monotonic() - self._flushed > self._seconds
        if self._waiting >= self._most or late:
            self.flush()

    def _write(self, event: bytes) -> None:
        data = struct.pack("<Bd", 1 << 3 | 1, time.time()) + event
        length = struct.pack("<Q", len(data))
        self._file.write(length + checksum(length) + data + checksum(data))

    def flush(self) -> None:
        """Bring what was written to the file."""
        with self._lock:
            if not self._file.closed:
                self._file.flush()
            self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Bring what was written to the file, and take no more."""
        with self._lock:
            self._closing()
