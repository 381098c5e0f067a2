"""A file is written wholly or not at all, whatever fails, and only where a file can be."""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from case_table import cases

import mirrored as mr
from mirrored import _files, profiler
from mirrored._files import as_path, remove_leftovers, replacing
from mirrored.errors import WeightsFileError

OLD, NEW = b"what was there", b"what is written" * 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def write(path: Any) -> None:
    with replacing(path, "file") as file:
        file.write(NEW)


# ---------------------------------------------------------------------------- failures


def fail_with(error: BaseException) -> Callable[..., None]:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise type(error)(*error.args)

    return fail


class FullDisk:
    """A file that takes half of what is written and then has no space."""

    def __init__(self, path: str, mode: str, **options: Any) -> None:
        self._file = open(path, mode, **options)  # noqa: SIM115 - closed at the exit.

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, data: bytes) -> None:
        self._file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


def interrupted_open(path: str, mode: str, **options: Any) -> None:
    """Make the file, and be interrupted before anybody has it."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    raise KeyboardInterrupt


BROKEN = OSError(errno.EIO, "Input/output error")
FAILURES: dict[str, tuple[Any, str, Callable[..., Any], type[BaseException]]] = {
    "write": (_files, "open", FullDisk, OSError),
    "fsync": (os, "fsync", fail_with(BROKEN), OSError),
    "replace": (os, "replace", fail_with(BROKEN), OSError),
    "interrupted write": (os, "fsync", fail_with(KeyboardInterrupt()), KeyboardInterrupt),
    "interrupted rename": (os, "replace", fail_with(KeyboardInterrupt()), KeyboardInterrupt),
    "open": (_files, "open", fail_with(PermissionError(errno.EACCES, "No")), PermissionError),
    "interrupted open": (_files, "open", interrupted_open, KeyboardInterrupt),
    "the folder": (os, "open", fail_with(OSError(errno.EMFILE, "Too many open files")), OSError),
}


@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize(("module", "call", "failure", "error"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("existing", [True, False], ids=["existing file", "no file"])
def test_failure_changes_nothing(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    call: str,
    failure: Callable[..., Any],
    error: type[BaseException],
    existing: bool,
) -> None:
    if existing:
        path.write_bytes(OLD)
    with monkeypatch.context() as patch:
        patch.setattr(module, call, failure, raising=module is os)
        with pytest.raises(error):
            write(path)
    assert os.listdir(path.parent) == ([path.name] if existing else [])
    if existing:
        assert path.read_bytes() == OLD
    write(path)  # The next correct call works.
    assert path.read_bytes() == NEW


@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_an_error_names_the_file(call: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, failure, _ = FAILURES[call]
    monkeypatch.setattr(module, name, failure, raising=module is os)
    with pytest.raises(OSError, match=f": '{path}'$") as caught:
        write(path)
    assert caught.value.filename == str(path)


def test_an_error_does_not_name_the_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)  # With an ending it is longer than names can be.
    with pytest.raises(OSError, match="too long") as caught:
        write(path)
    assert caught.value.filename == str(path)


def synced(descriptor: int) -> str:
    return "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "data"


def test_data_is_on_disk_before_the_name_and_the_name_before_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is opened before: where that fails nothing has changed."""
    events: list[str] = []
    fsync, replace, opened = os.fsync, os.replace, os.open

    def log_open(place: Any, flags: int, *args: Any) -> int:
        descriptor = opened(place, flags, *args)
        events.append(f"open {synced(descriptor)}")
        return descriptor

    def log_fsync(descriptor: int) -> None:
        events.append(f"sync {synced(descriptor)}")
        fsync(descriptor)

    def log_replace(old: str, new: str) -> None:
        events.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "open", log_open)
    monkeypatch.setattr(os, "fsync", log_fsync)
    monkeypatch.setattr(os, "replace", log_replace)
    write(path)
    assert events == ["open folder", "open data", "sync data", "rename", "sync folder"]


@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize(
    ("code", "lines"), [(errno.EINVAL, 0), (errno.ENOTSUP, 0), (errno.EIO, 1), (errno.ENOSPC, 1)]
)
def test_a_file_that_is_there_is_no_error(
    code: int,
    lines: int,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if synced(descriptor) == "folder":
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write(path)
    assert path.read_bytes() == NEW
    assert len(caplog.messages) == lines
    assert all("is written, but its folder could not be" in each for each in caplog.messages)


# ---------------------------------------------------------------------------- where it goes


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o000])
def test_permissions_of_a_new_file(path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        write(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_of_an_existing_file_are_those_of_the_new_one_from_the_start(
    path: Path, mode: int
) -> None:
    path.write_bytes(OLD)
    path.chmod(mode)
    with replacing(path, "file") as file:
        (temporary,) = path.parent.glob("*.tmp")
        assert stat.S_IMODE(temporary.stat().st_mode) == mode
        file.write(NEW)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_read_only_file_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root could always write.
    with pytest.raises(PermissionError, match="The file is read-only"):
        write(path)
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("existing", [True, False], ids=["to a file", "to nothing yet"])
def test_link_is_followed(path: Path, existing: bool) -> None:
    if existing:
        path.write_bytes(OLD)
    link = path.with_name("latest")
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == NEW


def test_path_without_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    write(path.name)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("place", ["", "folder", "new/"])
def test_over_a_folder(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="cannot replace a folder; add a file name"):
        write(place)
    assert os.listdir(tmp_path) == ["folder"]


def test_into_a_missing_folder(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "w", tmp_path / "file" / "w"):
        (tmp_path / "file").write_bytes(OLD)
        with pytest.raises(FileNotFoundError, match=r"create it first.*(missing|file)"):
            write(place)


@cases("path", [b"w", 3, None, ["w"]], ids=repr)
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(TypeError, match=r"A file needs a path\. Received: .*a Path\."):
        as_path(path, "file")


# ---------------------------------------------------------------------------- no regular files


def socket_at(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(str(path))


SPECIAL: dict[str, tuple[Callable[[Path], Any], str]] = {
    "device": (lambda path: path.symlink_to("/dev/null"), "a character device"),
    "FIFO": (os.mkfifo, "a FIFO"),
    "link to a FIFO": (
        lambda path: (os.mkfifo(f"{path}.fifo"), path.symlink_to(f"{path}.fifo")),
        "a FIFO",
    ),
    "socket": (socket_at, "a socket"),
    "folder": (os.mkdir, "a folder"),
}


def trace(path: Any) -> None:
    with profiler.trace(path):
        raise NotImplementedError("The block must not run.")


@pytest.fixture(scope="module")
def model() -> mr.Model:
    return mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])


WRITERS: dict[str, Callable[[mr.Model, str], Any]] = {
    "weights": lambda model, path: model.save_weights(path),
    "checkpoint": lambda model, path: mr.train.Checkpoint(model=model).write(path),
    "numbered checkpoint": lambda model, path: mr.train.Checkpoint(model=model).save(
        path.removesuffix("-7"), number=7
    ),
    "trace": lambda model, path: trace(path),
}
READERS: dict[str, Callable[[mr.Model, str], Any]] = {
    "weights": lambda model, path: model.load_weights(path),
    "checkpoint": lambda model, path: mr.train.Checkpoint(model=model).restore(path),
}


def kept(folder: Path) -> list[tuple[str, int, int]]:
    """Return all that is in a folder, with its kind and its number."""
    found = [(each, each.lstat()) for each in sorted(folder.iterdir())]
    return [(each.name, about.st_mode, about.st_ino) for each, about in found]


@pytest.mark.behaviour("regular-files")
@pytest.mark.parametrize(("make", "kind"), SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_file_is_neither_replaced_nor_read(
    make: Callable[[Path], Any], kind: str, model: mr.Model, tmp_path: Path
) -> None:
    path = tmp_path / "it-7"
    make(path)
    before = kept(tmp_path)
    for name, save in WRITERS.items():
        with pytest.raises(OSError, match=f"cannot replace {kind}; .*'{path}'"):
            save(model, str(path))
        assert kept(tmp_path) == before, name
    for name, load in READERS.items():
        with pytest.raises(WeightsFileError, match=f"'{path}' is {kind}. Pass the path of a file"):
            load(model, str(path))
        assert kept(tmp_path) == before, name
    assert mr.train.latest_checkpoint(tmp_path) is None


def test_an_open_pipe_is_not_replaced() -> None:
    """As standard output may be, by a name that leads to what has no path of its own."""
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match=f"cannot replace a FIFO; .*'/dev/fd/{writing}'"):
            write(f"/dev/fd/{writing}")
    finally:
        os.close(reading)
        os.close(writing)


def test_a_fifo_that_comes_while_a_trace_is_on(path: Path) -> None:
    with pytest.raises(OSError, match="cannot replace a FIFO"), profiler.trace(path):
        os.mkfifo(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


# ---------------------------------------------------------------------------- leftovers


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    with open(path, "rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


@pytest.mark.behaviour("leftovers")
@pytest.mark.parametrize(
    "remove",
    [lambda path: remove_leftovers(str(path.parent), lambda name: name == path.name), write],
    ids=["asked", "next write"],
)
def test_leftovers(remove: Callable[[Path], None], tmp_path: Path) -> None:
    """Those of killed writers go: not what is held, nor new and empty, nor of another name."""
    contents = {
        "w.0123abcd.mirrored.tmp": b"part",
        "w.4567abcd.mirrored.tmp": b"held",
        "w.89abcdef.mirrored.tmp": b"",
        "w.00000000.mirrored.tmp": b"",
        "other.0123abcd.mirrored.tmp": b"part",
        "w.0123ABCD.mirrored.tmp": b"part",
        "w.0123abc.mirrored.tmp": b"part",
        "w.0123abcd.tmp": b"of a user",
        "w": b"whole",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "w.ffffffff.mirrored.tmp")
    os.utime(tmp_path / "w.00000000.mirrored.tmp", (0, time.time() - 7200))
    with held(tmp_path / "w.4567abcd.mirrored.tmp"):
        remove(tmp_path / "w")
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {*contents, "w.ffffffff.mirrored.tmp"} - {
        "w.0123abcd.mirrored.tmp",
        "w.00000000.mirrored.tmp",
    }


@pytest.mark.behaviour("leftovers")
def test_the_file_of_a_living_writer_is_no_leftover(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it is written nor when all of it is; here it is one of the same program."""
    replace, looked = os.replace, []

    def look() -> None:
        remove_leftovers(str(path.parent), lambda name: True)
        looked.append(os.listdir(path.parent))

    def late(old: str, new: str) -> None:
        look()
        replace(old, new)

    monkeypatch.setattr(os, "replace", late)
    with replacing(path, "file") as file:
        file.write(NEW)
        look()
    assert path.read_bytes() == NEW
    assert [len(names) for names in looked] == [1, 1]
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("system", ["Windows", "a network"])
def test_a_file_system_without_locks(
    path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    """Writing goes on, and nothing is taken for a leftover."""
    if system == "Windows":
        monkeypatch.setattr(_files, "_locks", None)
        monkeypatch.delattr(os, "fchmod")
        monkeypatch.setattr(os, "replace", replace_closed_file)
    monkeypatch.setattr(fcntl, "flock", fail_with(OSError(errno.ENOLCK, "No locks available")))
    leftover = path.with_name("file.0123abcd.mirrored.tmp")
    leftover.write_bytes(OLD)
    write(path)
    remove_leftovers(str(path.parent), lambda name: True)
    assert path.read_bytes() == NEW
    assert leftover.exists()


def replace_closed_file(source: str, target: str) -> None:
    """Rename a file as Windows does: not one that is open."""
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    opened = {os.readlink(link) for link in links if os.path.islink(link)}
    if os.path.realpath(source) in opened:
        raise PermissionError(errno.EACCES, "The file is open", source)
    os.rename(source, target)
