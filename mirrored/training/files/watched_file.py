"""A file between HDF5 and the disk, since HDF5 does not hand on what goes wrong there.

It would say it in words of its own, lose an interrupt, or end the program. So it is told nothing,
and can close what it has open.
"""

import os
from collections.abc import Callable
from typing import IO, Any


class WatchedFile:
    """A file that keeps what goes wrong in it, for whoever asks.

    After that nothing is written, and what is read are zeros.

    Args:
        file: The file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file: Any = file
        self._failed = False
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise what went wrong, once, if something did."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def read(self, size: int = -1) -> bytes:
        """Return bytes: HDF5's package knows files by this method, and calls the next."""
        data: bytes = self._file.read(size)
        return data

    def readinto(self, buffer: Any) -> int:
        """Read bytes."""
        count = self._done(lambda: self._file.readinto(buffer), -1)
        if self._failed:
            view = memoryview(buffer).cast("B")
            view[:] = bytes(len(view))
            return len(view)
        return count

    def write(self, data: Any) -> int:
        """Write bytes."""
        return self._done(lambda: self._file.write(data), len(data))

    def truncate(self, size: int) -> int:
        """Make the file end after so many bytes."""
        return self._done(lambda: self._file.truncate(size), size)

    def flush(self) -> None:
        """Hand on what was written."""
        self._done(lambda: self._file.flush() or 0, 0)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._done(lambda: self._file.seek(offset, whence), offset)

    def tell(self) -> int:
        """Return the place."""
        return self._done(self._file.tell, 0)

    def _done(self, do: Callable[[], int], instead: int) -> int:
        if not self._failed:
            try:
                return do()
            except BaseException as error:
                self._failed, self._error = True, error.with_traceback(None)
        return instead
