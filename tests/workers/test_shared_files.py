"""Files that MPI shares memory through: those of dead jobs go, and those of live ones never do."""

import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirrored.errors import ResourceExhaustedError
from mirrored.workers import shared_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that memory is shared in, in this test."""
    monkeypatch.setattr(shared_files, "FOLDER", str(tmp_path))
    monkeypatch.setattr(shared_files, "_held", [])
    return tmp_path


def make(folder: Path, name: str, mode: int = 0o700) -> Path:
    """Return the path of a file, which is marked unless the mode says otherwise."""
    path = folder / name
    path.write_bytes(b"memory")
    path.chmod(mode)
    return path


def test_a_file_is_a_dead_jobs_once_nobody_holds_it(folder: Path) -> None:
    path = make(folder, "mpich_shm_12_0", 0o600)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        shared_files.hold_files()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    shared_files.remove_left_behind()
    assert path.exists()
    (held,) = shared_files._held
    os.close(held)  # As the end of a process does.
    shared_files.remove_left_behind()
    assert not path.exists()


@pytest.mark.parametrize(
    "make_other",
    [
        lambda folder: make(folder, "mpich_shm_13_0", 0o600),  # Of a program without this library.
        lambda folder: make(folder, "cache.bin"),
        lambda folder: (folder / "mpich_shm_14_0").mkdir(0o700),
        lambda folder: (folder / "mpich_shm_15_0").symlink_to(make(folder, "target")),
    ],
    ids=["not marked", "another name", "folder", "link"],
)
def test_other_files_stay(folder: Path, make_other: Callable[[Path], object]) -> None:
    make_other(folder)
    before = sorted(folder.iterdir())
    shared_files.remove_left_behind()
    assert sorted(folder.iterdir()) == before


def test_a_file_that_one_of_several_workers_holds_stays(folder: Path) -> None:
    path = make(folder, "mpich_shm_16_0")
    with path.open() as one:
        fcntl.flock(one, fcntl.LOCK_SH)
        with path.open() as other:
            fcntl.flock(other, fcntl.LOCK_SH)
        shared_files.remove_left_behind()
        assert path.exists()
    shared_files.remove_left_behind()
    assert not path.exists()


@pytest.mark.parametrize(
    ("free", "count", "refused"),
    [(2_200_000, "2", False), (2_000_000, "2", True), (1000, "1", False), (1000, "", False)],
)
def test_too_little_room_is_an_error_before_mpi_begins(
    monkeypatch: pytest.MonkeyPatch, free: int, count: str, refused: bool
) -> None:
    place = SimpleNamespace(f_bavail=free, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: place)
    environment = {"MPI_LOCALNRANKS": count}
    if not refused:
        shared_files.check_room(environment)
        return
    with pytest.raises(ResourceExhaustedError, match=r"2000000 bytes, for 2 workers.*mpich_shm_"):
        shared_files.check_room(environment)
