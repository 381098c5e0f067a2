"""``mirrored run``: what it runs, and whom it tells how that ended."""

import os
import py_compile
import shutil
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirrored import workers
from mirrored._commands import command_line
from mirrored.workers.worker import Workers


class Told(Workers):
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
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
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


# How `python` runs the same programs: sys.argv[0], __file__, __package__, and sys.path[0].
AS_PYTHON = """
import __main__
print([sys.argv[0], __file__, __package__, sys.path[0]], __main__.__dict__ is globals())
kept: int = 0
print(__annotations__)
"""


@pytest.mark.parametrize(
    ("words", "file", "package", "first"),
    [
        (["./program.py"], "./program.py", None, ""),
        (["folder/../program.py"], "folder/../program.py", None, ""),
        (["link.py"], "link.py", None, "folder"),
        (["compiled.pyc"], "compiled.pyc", None, ""),
        (["folder"], "folder/__main__.py", "", "folder"),
        (["archive.zip"], "archive.zip/__main__.py", "", "archive.zip"),
        (["-m", "program"], "program.py", "", ""),
        (["-m", "folder"], "folder/__main__.py", "folder", ""),
        (["-m", "folder.inner"], "folder/inner.py", "folder", ""),
    ],
)
@pytest.mark.parametrize("is_safe", [False, True])
def test_the_main_module_is_that_of_python(
    tmp_path: Path,
    told: Told,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    file: str,
    package: str | None,
    first: str,
    is_safe: bool,
) -> None:
    program(tmp_path, AS_PYTHON)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("__main__", "inner", "linked"):
        shutil.copy(tmp_path / "program.py", folder / f"{name}.py")
    (folder / "__init__.py").write_text("")
    (tmp_path / "link.py").symlink_to(folder / "linked.py")
    py_compile.compile(str(tmp_path / "program.py"), cfile=str(tmp_path / "compiled.pyc"))
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.write(folder / "__main__.py", "__main__.py")
    monkeypatch.chdir(tmp_path)
    for name in ("program", "folder", "folder.inner", "folder.__main__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if is_safe:
        names = {name for name in dir(sys.flags) if name[0] != "_"} - {"safe_path"}
        flags = {name: getattr(sys.flags, name) for name in names}
        monkeypatch.setattr(sys, "flags", SimpleNamespace(**flags, safe_path=True))
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path[1:]])
    assert command_line.main(["run", *words]) == 0
    path = os.path.join(tmp_path, file)
    named = words[0] if words[0] != "-m" else path
    # With -P only a folder or an archive that is run is added to the path.
    folders = "" if is_safe and words[0] not in ("folder", "archive.zip") else first
    top = str(tmp_path / folders) if folders else str(tmp_path)
    assert capsys.readouterr().out == f"{[named, path, package, top]} True\n{{'kept': {int}}}\n"
    assert sys.modules["__main__"].kept == 0  # As for the functions of `atexit`.
    assert "run's own" not in sys.path


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
        (["-m", "json.none"], "There is no module 'json.none'."),
        (["-m", "json.none.module"], "There is no module 'json.none.module'."),
        (["-m", "none.module"], "There is no module 'none.module'."),
        (["-m", "token.none"], "There is no module 'token.none'."),
        (["-m", "json"], "There is no module 'json.__main__'."),
        (["-m", "sys"], "The module 'sys' has no Python code."),
        (["-m", "__main__"], "There is no module '__main__'."),
        (["-m", ""], "There is no module ''."),
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


def test_the_missing_module_that_a_package_imports_is_the_programs_error(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package_of_a_test").mkdir()
    (tmp_path / "package_of_a_test" / "__init__.py").write_text("import no_such_module")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        command_line.main(["run", "-m", "package_of_a_test.inner"])
    assert len(told.failures) == 1
