"""``mirrored run``: what it runs, and whom it tells how that ended."""

import sys
from pathlib import Path

import pytest

from mirrored import workers
from mirrored._commands import command_line
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
    command_line.main(["run", *program(tmp_path, text), "-x", "--epochs=3"])
    assert capsys.readouterr().out == f"__main__ ['-x', '--epochs=3'] {tmp_path.resolve()}\n"
    assert told.failures == []


@pytest.mark.parametrize("words", [["--", "x"], ["x", "--", "--json"], ["--", "--", "--help"]])
def test_all_words_after_the_file_are_arguments(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert command_line.main(["run", *program(tmp_path, "print(sys.argv[1:])"), *words]) == 0
    assert capsys.readouterr().out == f"{words}\n"


def test_dashes_may_come_before_the_file(
    tmp_path: Path, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--", *program(tmp_path, "print(sys.argv[1:])"), "-x", "--"]
    assert command_line.main(["run", *words]) == 0
    assert capsys.readouterr().out == "['-x', '--']\n"


def test_a_module_is_run_by_its_name(
    tmp_path: Path,
    told: Told,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program(tmp_path, "print(__name__, sys.argv[1:])")
    monkeypatch.chdir(tmp_path)
    command_line.main(["run", "-m", "program", "more"])
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
        command_line.main(["run", *program(tmp_path, text)])
    assert told.failures == ([raised.value] if fails else [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: PROGRAM\n"),
        (["-m"], "the following arguments are required: PROGRAM\n"),
        (["--unknown", "x.py"], "unrecognized arguments: --unknown"),
        (
            ["no-such-file.py", "--help"],
            "There is no file 'no-such-file.py'. The current folder is",
        ),
        (["-m", "no_such_module", "-x"], "There is no module 'no_such_module'."),
        (["-m", ".relative"], "There is no module '.relative'."),
        (["."], "There is no file '.'. The current folder is"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_a_status(
    told: Told, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    before = sys.argv[:], sys.path[:]
    assert command_line.main(["run", *arguments]) == 2
    assert (sys.argv, sys.path) == before
    out, err = capsys.readouterr()
    assert out == ""
    *usage, line = err.splitlines()
    assert line.startswith("mirrored: ")
    assert message in f"{line}\n"
    assert all(text.startswith(("usage: ", " ")) for text in usage)
    # The other workers wait for this one if the command line was parsed.
    assert [str(error) for error in told.failures] == ([line[10:]] if not usage else [])
