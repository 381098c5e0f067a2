"""How much memory the workers of a host share, where there is little."""

import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrored.errors import ResourceExhaustedError
from mirrored.workers import host_memory
from mirrored.workers.host_memory import _fitting

MPI = SimpleNamespace(MIN="min")


class Local:
    """Two workers of a host, of which the other has room for so many bytes."""

    def __init__(self, others: int = 1 << 30) -> None:
        self.others = others

    def Get_size(self) -> int:  # As MPI names it.
        return 2

    def allreduce(self, mine: int, op: Any) -> int:
        assert op == "min"
        return min(mine, self.others)


@pytest.mark.parametrize(
    ("free", "others", "found"),
    [
        (1 << 30, 1 << 30, 1 << 20),  # What is asked for.
        (12 << 16, 1 << 30, 1 << 16),  # Three vectors each of two workers take half of it.
        (12 << 16, 1 << 14, 1 << 14),  # The other one saw less.
    ],
)
def test_it_fits(monkeypatch: pytest.MonkeyPatch, free: int, others: int, found: int) -> None:
    place = SimpleNamespace(f_bavail=free // 64, f_frsize=64)
    monkeypatch.setattr(os, "statvfs", lambda path: place)
    assert _fitting(MPI, Local(others), 1 << 20) == found


def test_too_little_is_an_error_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    place = SimpleNamespace(f_bavail=1000, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: place)
    with pytest.raises(ResourceExhaustedError, match=r"1000 bytes, for 2 workers.*--shm-size"):
        _fitting(MPI, Local(), 1 << 20)


def test_a_system_without_that_folder_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(os, "statvfs", refuse)
    assert _fitting(MPI, Local(), 1 << 20) == 1 << 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that memory is shared in, in this test."""
    monkeypatch.setattr(host_memory, "FOLDER", str(tmp_path))
    monkeypatch.setattr(host_memory, "_held", [])
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
        host_memory.hold_files()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    host_memory.remove_left_behind()
    assert path.exists()
    (held,) = host_memory._held
    os.close(held)  # As the end of a process does.
    host_memory.remove_left_behind()
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
    host_memory.remove_left_behind()
    assert sorted(folder.iterdir()) == before


def test_a_file_that_one_of_several_workers_holds_stays(folder: Path) -> None:
    path = make(folder, "mpich_shm_16_0")
    with path.open() as one:
        fcntl.flock(one, fcntl.LOCK_SH)
        with path.open() as other:
            fcntl.flock(other, fcntl.LOCK_SH)
        host_memory.remove_left_behind()
        assert path.exists()
    host_memory.remove_left_behind()
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
        host_memory.check_room(environment)
        return
    with pytest.raises(ResourceExhaustedError, match=r"2000000 bytes, for 2 workers.*mpich_shm_"):
        host_memory.check_room(environment)
