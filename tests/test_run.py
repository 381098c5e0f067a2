"""``python -m mirrored.run``: what it runs, and whom it tells how that ended."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mirrored import run, workers
from mirrored.workers.worker import OneWorker


class Told(OneWorker):
    """Notes what it is told of failures."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[BaseException] = []

    def failed(self, error: BaseException, step: str | None = None) -> None:
        self.failures.append(error)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    made = Told()
    monkeypatch.setattr(workers, "connect", lambda: made)
    monkeypatch.setattr(sys, "argv", ["run.py", "kept"])
    monkeypatch.setattr(sys, "path", ["run's own", *sys.path[1:]])
    return made


def program(folder: Path, text: str) -> list[str]:
    path = folder / "program.py"
    path.write_text(f"import sys\n{text}\n")
    return [str(path)]


def test_a_file_finds_its_arguments_and_its_neighbours(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "print(__name__, sys.argv[1:], sys.path[0])"
    run.main([*program(tmp_path, text), "-x", "--epochs=3"])
    assert capsys.readouterr().out == f"__main__ ['-x', '--epochs=3'] {tmp_path.resolve()}\n"
    assert told.failures == []


def test_a_module_is_run_by_its_name(
    tmp_path: Path,
    told: Told,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program(tmp_path, "print(__name__, sys.argv[1:])")
    monkeypatch.chdir(tmp_path)
    run.main(["-m", "program", "more"])
    assert capsys.readouterr().out == "__main__ ['more']\n"


@pytest.mark.parametrize(
    ("text", "ends", "fails"),
    [
        ("sys.exit()", SystemExit, False),
        ("sys.exit(0)", SystemExit, False),
        ("sys.exit(3)", SystemExit, True),
        ("sys.exit('no data')", SystemExit, True),
        ("raise KeyboardInterrupt", KeyboardInterrupt, True),
        ("1 / 0", ZeroDivisionError, True),
    ],
)
def test_the_others_hear_of_what_is_no_good_end(
    tmp_path: Path, told: Told, text: str, ends: type[BaseException], fails: bool
) -> None:
    with pytest.raises(ends) as raised:
        run.main(program(tmp_path, text))
    assert told.failures == ([raised.value] if fails else [])


@pytest.mark.parametrize(
    ("arguments", "status"), [([], 2), (["-m"], 2), (["--unknown", "x.py"], 2), (["--help"], 0)]
)
def test_without_a_program_it_says_how_it_is_used(
    told: Told, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int
) -> None:
    with pytest.raises(SystemExit) as raised:
        run.main(arguments)
    assert raised.value.code == status
    printed: Any = capsys.readouterr()
    assert "python -m mirrored.run FILE" in (printed.err if status else printed.out)
