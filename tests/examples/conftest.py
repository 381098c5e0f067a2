"""Runs an example as a user does: in a process of its own, from a folder somewhere else.

What ends before anything is computed is run here, which takes a fraction of the time.
"""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forked_programs import run_program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

RunExample = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_example(tmp_path: Path) -> RunExample:
    """Return ``run_example(name, *arguments, fails=False, **environment)``."""

    def run(
        name: str, *arguments: object, fails: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        variables = os.environ | environment
        if "PYTHONPATH" in environment:
            done = subprocess.run(
                [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
                cwd=tmp_path,
                env=variables,
                capture_output=True,
                text=True,
            )
        else:
            path = EXAMPLES / name
            done = run_program(path, arguments, folder=tmp_path, environment=variables)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        assert "Warning" not in done.stderr
        return done

    return run


@pytest.fixture
def ended_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Return ``ended_example(name, *arguments)``: what it prints, and the error that it ends with.

    It has to end by itself, as for --help, before it trains: what it does, it does to this process.
    """

    def run(name: str, *arguments: object) -> tuple[str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr()
        code = ended.value.code
        said = code if isinstance(code, str) else printed.err
        assert (code in (None, 0)) == (said == "")
        return printed.out, said

    return run
