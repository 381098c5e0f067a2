"""The command: what is kept is shown again, and only what is missing is measured."""

import json
from pathlib import Path

import pytest
from scaling_figures import found

from benchmarks import environments
from benchmarks.scaling import command, plot


def test_contenders_are_those_with_an_environment() -> None:
    assert command.parse_arguments([]).contenders == ["products", "mirrored", "torch"]
    assert set(command.parse_arguments([]).contenders) <= environments.BY_NAME.keys()
    assert command.parse_arguments([]).out.parts[-2:] == ("explanation", "scaling.md")


def test_figures_that_are_kept_are_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plot, "draw", lambda path: None)
    kept, out = tmp_path / "kept.json", tmp_path / "scaling.md"
    kept.write_text(json.dumps(found().to_json()))
    line = ["--json", str(kept), "--out", str(out), "--cache", str(tmp_path / "none")]
    command.main([*line, "--rounds", "3", "--note", "it was busy"])
    assert "- note: it was busy" in out.read_text()
    assert "| 2 workers, shared memory | 160 |" in out.read_text()
    assert "Skipped: mirrored" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="figures of 3 rounds"):
        command.main([*line, "--rounds", "4"])
