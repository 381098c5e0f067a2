"""Files of events as TensorBoard reads them, by the package tensorboardX.

Its records and messages are written here, and not by its own writers, whose threads keep errors of
the file to themselves. Only `create_file_writer` imports this module: the package may be missing.
"""

import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
from tensorboardX import RecordWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata

_DTYPES = {"f": "DT_FLOAT", "d": "DT_DOUBLE", "O": "DT_STRING"}
_numbers = count()


def _summary(tag: str, array: np.ndarray[Any, Any], plugin: str, description: str | None) -> Any:
    """Return a `Summary` of one value: float32, float64, or bytes as objects."""
    metadata = SummaryMetadata(plugin_data={"plugin_name": plugin}, summary_description=description)
    # Its `data_class`, a field that the package's messages lack: scalars or tensors.
    metadata.MergeFromString(bytes((4 << 3, 1 if plugin == "scalars" else 2)))
    is_text = array.dtype.kind == "O"
    tensor = {
        "dtype": _DTYPES[array.dtype.char],
        "tensor_shape": {"dim": [{"size": size} for size in array.shape]},
        "string_val": array.ravel().tolist() if is_text else None,
        "tensor_content": None if is_text else array.tobytes(),
    }
    return Summary(value=[{"tag": tag, "metadata": metadata, "tensor": tensor}])


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
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        # RecordWriter takes what begins like "s3:" for no file, which no absolute path does.
        self.path = os.path.join(os.path.abspath(folder), f"{name}.{next(_numbers)}{suffix}")
        self._records = RecordWriter(self.path)
        self._most, self._seconds = most, seconds
        self._waiting, self._flushed = 0, time.monotonic()
        self._lock = threading.Lock()
        self._closing = weakref.finalize(self, self._records.close)
        self._write(file_version="brain.Event:2")
        self.flush()

    @property
    def closed(self) -> bool:
        """Whether it takes no more events."""
        return not self._closing.alive

    def add(
        self, step: int, tag: str, array: np.ndarray[Any, Any], plugin: str, description: str | None
    ) -> None:
        """Write a summary.

        Args:
            step: Its step.
            tag: What it is called.
            array: The value: float32, float64, or bytes as objects.
            plugin: Which part of TensorBoard shows it.
            description: What that says of it.
        """
        self.write(step=step, summary=_summary(tag, array, plugin, description))

    def write(self, **fields: Any) -> None:
        """Write an event.

        Args:
            **fields: The fields of its message but for the time.
        """
        with self._lock:
            self._write(**fields)
            self._waiting += 1
            late = time.monotonic() - self._flushed > self._seconds
        if self._waiting >= self._most or late:
            self.flush()

    def _write(self, **fields: Any) -> None:
        with self._named_in_errors():
            self._records.write(Event(wall_time=time.time(), **fields).SerializeToString())

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        """Name the file in an error of the system, which does not: a disk may be full."""
        try:
            yield
        except OSError as error:
            error.filename = error.filename or self.path
            raise

    def flush(self) -> None:
        """Bring what was written to the file.

        Raises:
            OSError: It cannot be written.
        """
        with self._lock, self._named_in_errors():
            if not self.closed:
                self._records.flush()
            self._waiting, self._flushed = 0, time.monotonic()

    def close(self) -> None:
        """Bring what was written to the file, and take no more.

        Raises:
            OSError: It cannot be written.
        """
        with self._lock, self._named_in_errors():
            self._closing()
