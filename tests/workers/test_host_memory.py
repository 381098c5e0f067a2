"""How much memory the workers of a host share, where there is little."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from mirrored.errors import ResourceExhaustedError
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
