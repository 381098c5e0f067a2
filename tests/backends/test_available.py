"""The memory that a host has left, by what it says of itself and of the container around."""

from pathlib import Path

import pytest

from mirrored.backends import available


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"meminfo": "MemTotal: 9 kB\nMemAvailable:   5 kB\n"}, 5 << 10),
        ({"meminfo": "MemTotal: 9 kB\n"}, None),
        ({"meminfo": "MemAvailable: 5 kB\n", "max": "4000\n", "current": "1000\n"}, 3000),
        ({"meminfo": "MemAvailable: 5 kB\n", "max": "max\n", "current": "1000\n"}, 5 << 10),
        ({"max": "400\n", "current": "1000\n"}, 0),
    ],
)
def test_the_least_of_what_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(available, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(available, "_CGROUPS", [(tmp_path / "max", tmp_path / "current")])
    assert available.available_host_memory() == expected
