"""Writing files so that a crash leaves the old file or the new one, never a part.

Whatever fails, the old file stays as it was and no temporary file is left.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO

PathName = str | os.PathLike[str]

_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows alone has it; text mode alters line ends.


def check_replaceable(path: PathName, what: str) -> str:
    """Return the real path of a file that is to be written, after checking that it can be.

    Args:
        path: The file.
        what: What messages call it.

    Raises:
        OSError: It is a folder, it is read-only, or its own folder is missing.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(
            errno.EISDIR, f"A {what} cannot replace a folder; add a file name", os.fspath(path)
        )
    if os.path.exists(target) and not os.access(target, os.W_OK):
        # Renaming over a file would not ask its permission, and it was taken away for a reason.
        raise PermissionError(errno.EACCES, f"The {what} is read-only", os.fspath(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT, f"The folder for the {what} is not there; create it first", folder
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, f"The folder for the {what} is read-only", folder)
    return target


@contextlib.contextmanager
def replacing(target: str) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `target` when all of it is written.

    Args:
        target: What `check_replaceable` returned.
    """
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    # Mode 0o666 less the umask is what any new file gets; tempfile's 0o600 would shut others out.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except BaseException:  # An interrupt too must leave nothing behind.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    """Make the new name durable, where the system can: not on Windows nor on every file system."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
