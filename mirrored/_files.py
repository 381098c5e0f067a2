"""Writes files so that a crash leaves the old file or the new one, never a part.

After an error the old file is unchanged and no temporary file is left. Temporary files of programs
that were killed can be distinguished from those of running ones.
"""

import atexit
import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import IO, Any, Protocol, TypeVar

from mirrored._contexts import Within
from mirrored._logging import logger
from mirrored._threads import Task, failed, start
from mirrored._types import PathLike

_locks: Any = None
with contextlib.suppress(ImportError):  # Windows has no such locks.
    import fcntl

    _locks = fcntl

_Value = TypeVar("_Value")

_ENDING = ".mirrored.tmp"  # No other program's file ends so.
_TEMPORARY = re.compile(rf"(?P<name>.+)\.[0-9a-f]{{8}}{re.escape(_ENDING)}", re.DOTALL)
_NEW = 3600.0  # Seconds for which an empty temporary file may be one whose writer just made it.
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def as_path(path: Any, what: str) -> str:
    """Return a path as a string.

    Args:
        path: A string or a path object of strings.
        what: What messages call what is there.

    Raises:
        TypeError: It is something else, such as bytes or the number of an open file.

    Example:
        >>> import pathlib
        >>> from mirrored._files import as_path
        >>> as_path(pathlib.PurePosixPath("run/trace.json"), "trace")
        'run/trace.json'
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"A {what} needs a path. Received: {path!r}. Pass a string or a Path.")
    return name


def special_kind(path: str) -> str | None:
    """Return the kind of file at a path; None for a regular file, or where there is none.

    Args:
        path: The path; symbolic links are followed.

    Example:
        >>> from mirrored._files import special_kind
        >>> special_kind("."), special_kind("no such file")
        ('a folder', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")


def check_replaceable(path: PathLike, what: str) -> str:
    """Return the real path of a file that is to be written, after checking that it can be.

    Args:
        path: The file; a symbolic link stands for what it leads to.
        what: What messages call it.

    Raises:
        TypeError: `path` is no path.
        OSError: It is no regular file, it is read-only, or its own folder is missing.
    """
    name = as_path(path, what)
    target = os.path.realpath(name)
    # Not of the target: a name such as /dev/stdout may lead to what has no path.
    kind = special_kind(name or target)
    if kind == "a folder" or name.endswith(os.sep):
        raise IsADirectoryError(
            errno.EISDIR, f"A {what} cannot replace a folder; add a file name", name
        )
    if kind is not None:  # To rename a file over it would take it away.
        raise OSError(errno.EINVAL, f"A {what} cannot replace {kind}; choose another file", name)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        # Renaming over a file would not ask its permission, and it was taken away for a reason.
        raise PermissionError(errno.EACCES, f"The {what} is read-only", name)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT, f"The folder for the {what} does not exist; create it first", folder
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, f"The folder for the {what} is read-only", folder)
    return target


class Company(Protocol):
    """Processes that train together, of which one writes shared files.

    All of them call what is here, in the same order.
    """

    @property
    def changes(self) -> int:
        """How often processes have died or joined; negative: this one has not joined yet."""

    @property
    def goes_on(self) -> bool:
        """Whether the others go on where one dies."""

    @property
    def writes(self) -> bool:
        """Whether this is the one; another may be later, where processes die."""

    def agree(self, what: str, error: BaseException | None) -> None:
        """Wait for all processes; raise if another one had an error."""

    def of_all(self, value: Any, what: str) -> list[Any]:
        """Return the small object of each process, that of the writer first."""

    def as_before(self, find: Callable[[], _Value]) -> _Value:
        """Return a function's result; in a process that joins later, the others' at this place."""


_company: Company | None = None
_alone: ContextVar[bool] = ContextVar("mirrored_files_alone", default=False)


def keep_company(company: Company) -> None:
    """Write from now on together with others.

    Args:
        company: They.
    """
    global _company
    _company = company


def alone_unless(shared: bool) -> AbstractContextManager[None]:
    """Within this context write as a process that trains alone, unless the files are shared.

    Args:
        shared: Whether it belongs to several processes.
    """
    return contextlib.nullcontext() if shared or _company is None else Within(_alone, True)


def _others() -> Company | None:
    return None if _alone.get() else _company


def _changes() -> int:
    """Return how often processes have died."""
    others = _others()
    return 0 if others is None else others.changes


def goes_on() -> bool:
    """Return whether other processes go on where this one dies."""
    others = _others()
    return others is not None and others.goes_on


def has_joined() -> bool:
    """Return False in a process that will take the place of one that has died."""
    return _changes() >= 0


def trains_together() -> bool:
    """Return whether other processes train together with this one."""
    return _others() is not None


def writes() -> bool:
    """Return whether this process writes the files that are shared."""
    others = _others()
    return others is None or others.writes


def writes_to(path: PathLike) -> bool:
    """Return whether this process writes a file; all that train together call it.

    The first one does, and so does each that has another path for it, as where programs put their
    number into it.

    Args:
        path: The file.
    """
    return writer_of(path)()


def writer_of(path: PathLike) -> Callable[[], bool]:
    """Return what says at any time whether `writes_to` returns True; all call this function."""
    name = os.fspath(path)
    if not trains_together() or of_writer(name, "the path of a file") != name:
        return _always
    return writes


def _always() -> bool:  # What callbacks have of it is pickled with them.
    return True


def of_writer(value: _Value, what: str) -> _Value:
    """Return the value of the process that writes; all that train together call it.

    Args:
        value: What this process has, a small object.
        what: What errors call it.
    """
    return of_all(value, what)[0]


def of_all(value: _Value, what: str) -> list[_Value]:
    """Return the value of each process, that of the writer first; all that train together call it.

    Args:
        value: What this process has, a small object.
        what: What errors call it.
    """
    others = _others()
    return [value] if others is None else others.of_all(value, what)


def as_before(find: Callable[[], _Value]) -> _Value:
    """Return what a function finds in files; all that train together call it.

    A process that joins later gets what the others found, so that it takes the same way as they.

    Args:
        find: The function.
    """
    others = _others()
    return find() if others is None else others.as_before(find)


def agree(what: str, error: BaseException | None = None) -> None:
    """Return when all processes that train together have come here.

    Args:
        what: What is done then, for errors.
        error: What went wrong in this one, which the others hear of.
    """
    others = _others()
    if others is not None:
        others.agree(what, error)


def saving(path: PathLike, what: str) -> AbstractContextManager[IO[bytes]]:
    """Open a file as `replacing` does; of processes that train together some alone do.

    `writes_to` says which. The others write what goes nowhere, and all wait until the file is
    there: what follows may read it, or it is there on none.

    Args:
        path: The file.
        what: What messages call it.
    """
    return _saving_together(path, what) if trains_together() else replacing(path, what)


@contextlib.contextmanager
def _saving_together(path: PathLike, what: str) -> Iterator[IO[bytes]]:
    import tempfile  # Few programs have several processes.

    name = as_path(path, what)
    own, changes = writes_to(name), _changes()
    with contextlib.ExitStack() as stack:
        copy = None if own else stack.enter_context(tempfile.TemporaryFile())
        try:
            with replacing(name, what) if copy is None else contextlib.nullcontext(copy) as file:
                yield file
        except BaseException as error:
            agree(what, error)
            raise

        def write_instead() -> None:
            if copy is not None:
                copy.seek(0)
                with replacing(name, what) as file:
                    shutil.copyfileobj(copy, file)

        _agree_on_file(name, what, changes, write_instead)


def _agree_on_file(
    path: PathLike,
    what: str,
    changes: int,
    write_instead: Callable[[], object],
    failure: BaseException | None = None,
) -> None:
    """Return when all have come here and a file is there, though its writer may have died.

    Args:
        path: The file.
        what: What errors call it.
        changes: How often processes had died when the writer was chosen.
        write_instead: Writes the file in the process that is the writer now.
        failure: What went wrong in this process.
    """
    others = _others()
    agree(what, failure)
    while failure is None and others is not None and others.changes != changes:
        changes = others.changes
        try:
            if others.writes:
                write_instead()
        except BaseException as error:
            failure = error
        agree(what, failure)
        if failure is not None:
            raise failure
    if others is not None and others.changes and others.writes:
        with contextlib.suppress(OSError):  # Those of the dead too that are empty yet.
            folder, base = os.path.split(os.path.realpath(path))
            remove_leftovers(folder, base.__eq__, are_dead=True)


@contextlib.contextmanager
def replacing(path: PathLike, what: str) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of another when all of it is written.

    Once it has taken the place, nothing is raised but an interrupt; and what killed programs have
    left that would have taken it is deleted.

    Args:
        path: The other file, which need not be there; a symbolic link is followed.
        what: What messages call it.

    Raises:
        TypeError: `path` is no path.
        OSError: As for `check_replaceable`, or the file cannot be written; the error names it.
    """
    target = check_replaceable(path, what)
    folder = _open_folder(os.path.dirname(target))  # Now: to fail later would be too late.
    try:
        with _replaced(target, as_path(path, what)) as file:
            yield file
        _sync_folder(folder, target)
        with contextlib.suppress(OSError):  # The file is there: all else can wait.
            remove_leftovers(os.path.dirname(target), os.path.basename(target).__eq__)
    finally:
        if folder is not None:
            with contextlib.suppress(OSError):  # Nothing was written through it.
                os.close(folder)


@contextlib.contextmanager
def _replaced(target: str, name: str) -> Iterator[IO[bytes]]:
    temporary = _unused_name(target)
    try:  # An interrupt may come as soon as there is a file, and must leave nothing behind.
        with open(temporary, "x+b", opener=_with_mode(target)) as file:
            with contextlib.suppress(OSError):  # A file system may have no locks.
                _lock(file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            if _locks is None:
                file.close()  # Windows renames no open file.
            os.replace(temporary, target)  # It is held until it has its name.
            with contextlib.suppress(OSError):  # All of it is on the disk, and in its place.
                file.close()
    except BaseException as error:
        with contextlib.suppress(OSError):  # It is not there; and what went wrong first is told.
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is None:
            error.add_note(f"It was raised by writing {name!r}.")
        elif isinstance(error, OSError) and error.filename2 is None:
            # The temporary one is nobody's business.
            error.filename = name if error.filename in (None, temporary) else error.filename
        raise


def _with_mode(target: str) -> Callable[[str, int], int]:
    """Return an opener that creates a file with another one's mode, or that of a new file.

    From the start, so that nobody else reads what is being written. (tempfile's mode would shut
    others out.)
    """
    mode: int | None = None
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.stat(target).st_mode)

    def create(path: str, flags: int) -> int:
        if mode is None:
            return os.open(path, flags, 0o666)
        descriptor = os.open(path, flags, mode & 0o777)
        try:
            if hasattr(os, "fchmod"):  # The mask of new files is not for it.
                os.fchmod(descriptor, mode)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    return create


def _unused_name(target: str) -> str:
    while True:
        temporary = f"{target}.{os.urandom(4).hex()}{_ENDING}"
        if not os.path.lexists(temporary):
            return temporary


def _open_folder(folder: str) -> int | None:
    """Open a folder to make a new name in it durable; None where the system does not let us."""
    try:
        return os.open(folder, os.O_RDONLY)
    except PermissionError:  # What may be written to need not be readable.
        return None


def _sync_folder(folder: int | None, target: str) -> None:
    """Make the new name durable; the file is complete, so an error here is only logged."""
    if folder is None:
        return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Not every file system can.
            logger.warning(
                "The file %r is written, but its folder could not be synchronized with the disk: "
                "%s. A power failure may bring the old file back.",
                target,
                error,
            )


# ---------------------------------------------------------------------------- asynchronous writes

# The last asynchronous save, until somebody has waited for it.
unsettled: list[Task] = []


def save_in_thread(
    path: PathLike, what: str, write: Callable[[], object], undo: Callable[[], object]
) -> None:
    """Let a thread write a file while the program goes on; all that train together call it.

    Call `settle` first: there is one such thread. Of processes that train together, only the one
    that writes the file starts it.

    Args:
        path: The file.
        what: What messages call it.
        write: Writes the file.
        undo: Called before an error of `write` is raised.

    Raises:
        RuntimeError: The system refuses the thread.
        OSError: As for `check_replaceable`, in a process that trains alone.
    """
    together, own, changes = trains_together(), writes_to(path), _changes()
    if not together:
        check_replaceable(path, what)

    def write_alone() -> None:
        with alone_unless(False):
            write()

    def call() -> None:
        try:
            if own:
                write_alone()
        except BaseException as error:
            error.add_note(f"An earlier call started the asynchronous save of {path!r}.")
            raise

    def agree_on_file(error: BaseException | None) -> None:
        again = bool if own else write_alone
        _agree_on_file(path, "an asynchronous save", changes, again, error)

    task = Task("mirrored-save", call, undo, agree_on_file if together else None)
    try:
        unsettled.append(task)
        start(task.thread)
    except BaseException:
        task.cancel()
        raise


def wait_for_save() -> None:
    """Return when no thread of ours writes a file; an error is raised later."""
    for task in [*unsettled]:
        task.wait()


def settle() -> None:
    """Wait for the asynchronous save, and raise its error; all that train together call it.

    Raises:
        OSError: The file could not be written; the one before is unchanged.
        WorkerError: The worker that writes the file could not.
    """
    for task in _settled():
        error = _end(task)
        if task.agree is not None:
            task.agree(error)
        if error is not None:
            raise error


def note_unsettled(error: BaseException) -> None:
    """Wait for the asynchronous save; where it fails, note that on an error that is raised.

    Args:
        error: The error, which ends what has started the save.
    """
    for late in filter(None, map(_end, _settled())):
        error.add_note(f"Another error was raised meanwhile: {type(late).__name__}: {late}")


def _settled() -> list[Task]:
    """Wait, and return the saves whose errors this process can raise: alone not those of all."""
    wait_for_save()
    return [task for task in unsettled if trains_together() or task.agree is None]


def _end(task: Task) -> BaseException | None:
    error = task.end()
    with contextlib.suppress(ValueError):  # Another thread may have waited too.
        unsettled.remove(task)
    return error


def _settle_at_exit() -> None:
    """Wait as `settle` does, alone: Python prints the error."""
    for error in filter(None, map(_end, [*unsettled])):
        raise error


def _forget() -> None:
    """Leave the save to the process that has its thread: this one was forked from it."""
    unsettled.clear()
    failed.clear()


atexit.register(_settle_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# ---------------------------------------------------------------------------- leftovers


def remove_leftovers(folder: str, owns: Callable[[str], object], *, are_dead: bool = False) -> None:
    """Delete the temporary files of writers that were killed; living ones hold theirs.

    Args:
        folder: Where to look.
        owns: Whether files that take the place of this name are to be deleted.
        are_dead: Whether no writer can have made an empty one just now.
    """
    for name in os.listdir(folder or os.curdir):
        match = _TEMPORARY.fullmatch(name)
        if match is not None and owns(match["name"]):
            with contextlib.suppress(OSError):  # It is gone by now, held, or somebody else's.
                _remove_leftover(os.path.join(folder, name), are_dead)


def _remove_leftover(path: str, is_dead: bool) -> None:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return
    if not (status.st_size or is_dead) and abs(time.time() - status.st_mtime) < _NEW:
        return  # Its writer may be about to lock it.
    descriptor = os.open(path, os.O_RDWR)
    try:
        _lock(descriptor)
        os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Hold an open file until it is closed, or the program ends; OSError where others hold it."""
    if _locks is None:
        raise OSError(errno.ENOTSUP, "This system has no locks of files")
    _locks.flock(descriptor, _locks.LOCK_EX | _locks.LOCK_NB)
