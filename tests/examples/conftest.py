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
    """Return ``run_example(name, *arguments, **environment)``; it must not fail."""

    def run(name: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        path = EXAMPLES / name
        variables = os.environ | environment
        done = run_program(path, arguments, folder=tmp_path, environment=variables, torn_down=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Warning" not in done.stderr
        return done

    return run


@pytest.fixture
def without_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return ``without_module(name)``, from which on this package is not installed."""

    def hide(name: str) -> None:
        absent = tmp_path / "absent" / name
        absent.mkdir(parents=True)
        (absent / "__init__.py").write_text(
            f"raise ModuleNotFoundError(\"No module named '{name}'\", name='{name}')"
        )
        monkeypatch.syspath_prepend(absent.parent)
        for each in [each for each in sys.modules if each.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, each)

    return hide


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
