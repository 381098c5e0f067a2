"""Writes the logs of each epoch to a CSV file."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from mirrored._files import as_path, has_joined, of_writer, writer_of, writes
from mirrored._types import PathLike
from mirrored.training.callbacks.callback import Callback, Logs


class CSVLogger(Callback):
    """Writes a row an epoch to a CSV file: the epoch, counted from 0, and its logs by their names.

    A row is in the file, wholly, when its epoch has ended. Where a row cannot be written, as on a
    full disk, `fit` ends with the error, and the rows before are in the file.

    Args:
        filename: The file, in a folder that is there.
        separator: What stands between two values, one character.
        append: Whether to go on behind the rows that are there; else they are deleted when
            training begins.

    Raises:
        TypeError: `filename` is no path.
        OSError: When training begins, or at the end of an epoch: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> dense = mr.layers.Dense(1, kernel_initializer="ones")
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), dense])
        >>> model.compile(mr.optim.SGD(0.0), "mse")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "log.csv")
        ...     log = mr.callbacks.CSVLogger(path)
        ...     history = model.fit([[1.0]], [[2.0]], epochs=2, callbacks=[log], verbose=0)
        ...     print(path.read_text())
        epoch,loss,val_loss
        0,1.0,NA
        1,1.0,NA
        <BLANKLINE>
    """

    def __init__(self, filename: PathLike, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.sep = separator
        self.filename = as_path(filename, "log")
        self.append = append
        self.keys: list[str] | None = None
        self.append_header = True
        self._resumed: int | None = None  # Bytes of the rows of the run that is continued.
        self._path = self.filename
        self._writes: Callable[[], bool] = writes
        self._wrote = True
        # What the file should have: the bytes before the last row, and that row.
        self._size, self._last = 0, b""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Make the file."""
        self._writes = writer_of(self.filename)
        # The folder that the process is in may be another one at the end of an epoch.
        self._path = os.path.abspath(self.filename)
        self.keys, self._last = None, b""
        has_begun = not has_joined()
        if has_begun:  # The worker that writes made the file; the state says how long it is.
            self._wrote, self._size = False, self._resumed or 0
            self.append_header = not self._size
        while not has_begun:  # More than once where the worker that writes died before it did.
            self._wrote = self._writes()
            if self._wrote:
                self._begin()
            size = os.path.getsize(self._path) if self._wrote else 0
            own = self._wrote, size, self.append_header
            has_begun, self._size, self.append_header = of_writer(own, "the beginning of a log")

    def _begin(self) -> None:
        """Make the file, or continue one."""
        if self._resumed is not None and os.path.isfile(self.filename):
            os.truncate(self.filename, min(self._resumed, os.path.getsize(self.filename)))
            self.append_header = not self._resumed
            return
        if self.append and os.path.exists(self.filename):
            with open(self.filename, encoding="utf-8") as file:
                self.append_header = not file.readline()
        with open(self.filename, "a" if self.append else "w", encoding="utf-8"):
            pass

    def state_dict(self) -> dict[str, Any]:
        """Return the columns, and how many bytes the rows so far have."""
        self._take_over()
        size = os.path.getsize(self._path) if self._writes() else 0
        return {"keys": self.keys, "size": size}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue behind the rows of a state; later ones are deleted when training begins."""
        self.keys, self._resumed = state["keys"], state["size"]

    def _let_go(self) -> None:
        self._resumed = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Write the epoch's row, and before the first one the names."""
        import csv
        import io

        logs = logs or {}
        first = self.keys is None
        if self.keys is None:
            self.keys = sorted(logs)
            if not any(key.startswith("val_") for key in self.keys):
                # Later epochs may be validated.
                self.keys += [f"val_{key}" for key in self.keys]
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.sep)
        if first and self.append_header:
            writer.writerow(["epoch", *self.keys])
        writer.writerow([epoch, *(_cell(logs.get(key, "NA")) for key in self.keys)])
        try:
            self._take_over()
            self._size += len(self._last)
            self._last = text.getvalue().encode("utf-8")
            if self._wrote:
                _append(self._path, self._last)
        except BaseException as error:
            if first:
                self.keys = None
            if isinstance(error, OSError):
                error.filename = self.filename
                error.add_note(f"The log of epoch {epoch + 1} is not in it, all before it are.")
            raise

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Write the last row, where the worker that writes died before it."""
        self._take_over()

    def _take_over(self) -> None:
        """Write the last row where it is missing, and this worker is the one that writes by now."""
        if self._wrote or not self._writes():
            return
        self._wrote = True
        if os.path.getsize(self._path) <= self._size:
            _append(self._path, self._last)


def _cell(value: Any) -> Any:
    """Return a value as a cell has it: several in brackets."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value
    return f'"[{", ".join(map(str, value))}]"'


def _append(path: str, data: bytes) -> None:
    """Write to the end of a file, all or nothing."""
    with open(path, "ab", buffering=0) as file:
        before = os.fstat(file.fileno()).st_size
        try:
            while data:
                data = data[file.write(data) :]
        except BaseException:
            with suppress(OSError):  # What is no file on a disk has no end to be cut.
                file.truncate(before)
            raise
