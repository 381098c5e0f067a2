"""What is measured of files: each format of ours is saved and loaded, and has its row."""

from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.contenders import files as contender


@pytest.mark.parametrize("name", [each for each in files.FORMATS if each.startswith("mirrored")])
def test_formats(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contender, "SIZE", 4)
    ending, make = files.FORMATS[name]
    save, load = make(2)
    path = tmp_path / f"model{ending}"
    save(str(path))
    load(str(path))
    assert path.stat().st_size > 2 * 4 * 4 * 4


def test_a_row() -> None:
    found = {"bytes": 2**30, "save_s": 0.5, "load_s": 2, "save_bytes": 2**20, "load_bytes": 0}
    assert files.line("some", found) == "| some | 0.50 | 2.00 | 2.15 | 0.54 | 1 | 0 |"
