"""The command: files of tests that fail, crash and hang, its exit status, and what it writes."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from case_table import cases
from forked_programs import run_program

from benchmarks.gpu import command, machine, outcomes, parts
from benchmarks.gpu.parts import Deadline, Ended
from benchmarks.gpu.results import Results

File = Callable[..., Path]
PASSES = "def test_good(): pass\n"
PYTEST = f"""
import sys

import pytest

sys.path.insert(0, {str(parts.ROOT)!r})
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Return ``file(text, name="test_it.py")``: the path of a file of tests."""

    def make(text: str, name: str = "test_it.py") -> Path:
        path = tmp_path / name
        path.write_text(f"import os, time\nimport pytest\n\n{text}")
        return path

    return make


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let files run in copies of a process that has imported what they need."""
    program = tmp_path / "pytest_of_a_file.py"
    program.write_text(PYTEST)

    def run(command: list[str], limit: float, environment: dict[str, str]) -> Ended:
        assert command[1:3] == ["-m", "pytest"]
        options = {"folder": parts.ROOT, "environment": {**os.environ, **environment}}
        done = run_program(program, command[3:], **options)
        return Ended(done.returncode, 0.0, done.stdout + done.stderr)

    monkeypatch.setattr(command.parts, "run", run)


def outcome_of(found: Any) -> dict[str, str]:
    return {str(each["test"]).rpartition("::")[2]: each["outcome"] for each in found.tests}


# ---------------------------------------------------------------------------- a file of tests


def test_outcomes_of_a_file(file: File) -> None:
    path = file(
        "def test_good(): pass\n"
        "def test_bad(): raise ValueError('the reason')\n"
        "@pytest.mark.skip(reason='no part')\ndef test_skipped(): pass\n"
        "@pytest.fixture\ndef broken(): raise KeyError('fixture')\n"
        "def test_broken(broken): pass\n"
        "@pytest.fixture\ndef untidy():\n    yield\n    raise KeyError('teardown')\n"
        "def test_untidy(untidy): pass\n"
    )
    found = command.run_file(path, 60.0, simulated=False)
    assert outcome_of(found) == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_skipped": "skipped",
        "test_broken": "failed",
        "test_untidy": "failed",
    }
    texts = {str(each["test"]).rpartition("::")[2]: each["text"] for each in found.tests}
    assert "the reason" in texts["test_bad"]
    assert texts["test_skipped"] == "Skipped: no part"
    assert found.failed
    assert found.problem is None
    assert "test_bad" in found.last_lines


@pytest.mark.usefixtures("forked")
def test_a_file_that_passes(file: File) -> None:
    found = command.run_file(file(PASSES), 60.0, simulated=False)
    assert (found.failed, found.problem, found.last_lines) == (False, None, "")


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("body", "how"),
    [("os._exit(7)", "ended with status 7"), ("os.abort()", "ended by SIGABRT")],
)
def test_what_came_before_a_crash_is_kept(file: File, body: str, how: str) -> None:
    path = file(f"{PASSES}def test_crash(): {body}\ndef test_never(): pass\n")
    found = command.run_file(path, 60.0, simulated=False)
    assert outcome_of(found) == {"test_good": "passed", "test_crash": "crashed"}
    assert found.failed
    assert found.problem == how


def test_a_file_that_is_out_of_time(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(program: Any, limit: float, environment: dict[str, str]) -> Ended:
        said = Path(environment[outcomes.VARIABLE])
        said.write_text('{"test": "test_hang"}\n')
        return Ended(None, limit, "the last line")

    monkeypatch.setattr(command.parts, "run", hang)
    found = command.run_file(file(PASSES), 60.0, simulated=False)
    assert outcome_of(found) == {"test_hang": "crashed"}
    assert found.problem == "not ended after 60 s, and killed"
    assert found.last_lines == "the last line"


@pytest.mark.usefixtures("forked")
def test_a_file_that_cannot_be_read(file: File) -> None:
    found = command.run_file(file("import no_such_module\n"), 60.0, simulated=False)
    assert found.failed
    assert [each["outcome"] for each in found.tests] == ["failed"]
    assert "no_such_module" in found.tests[0]["text"]


@pytest.mark.usefixtures("forked")
def test_a_file_without_tests(file: File) -> None:
    found = command.run_file(file(""), 60.0, simulated=False)
    assert found.problem == "has run no test"
    assert found.failed


def test_a_line_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "outcomes"
    path.write_text('{"test": "a", "outcome": "passed"}\n{"test": "b"}\n{"test": "c", "outc')
    assert {each["test"]: each["outcome"] for each in outcomes.read(path)} == {
        "a": "passed",
        "b": "crashed",
    }
    assert outcomes.read(tmp_path / "none") == []


@pytest.mark.usefixtures("forked")
def test_the_tests_of_the_gpu_run_on_a_simulated_one() -> None:
    found = command.run_file(command.TESTS / "test_bad_input.py", 60.0, simulated=True)
    assert set(outcome_of(found).values()) == {"passed"}, found.last_lines


@pytest.mark.usefixtures("forked")
def test_the_tests_of_the_gpu_are_skipped_without_one() -> None:
    found = command.run_file(command.TESTS / "test_precision.py", 60.0, simulated=False)
    if not machine.gpu(simulated=False):
        assert set(outcome_of(found).values()) == {"skipped"}, found.last_lines


# ---------------------------------------------------------------------------- the run


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command find a card, of which nothing is known."""
    monkeypatch.setattr(machine, "gpu", lambda simulated: {"device_name": "a card"})
    monkeypatch.setattr(command, "describe_devices", lambda simulated: "its devices")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process of a file end at once, as the file's text says."""

    def run(program: Any, limit: float, environment: dict[str, str]) -> Ended:
        path = Path(program[-1])
        status, outcome = json.loads(path.read_text())
        if outcome == "interrupted":
            raise KeyboardInterrupt
        said = {"test": f"{path.name}::test_it", "outcome": outcome, "seconds": 0.0, "text": ""}
        Path(environment[outcomes.VARIABLE]).write_text(json.dumps(said))
        return Ended(status, 1.0, "")

    monkeypatch.setattr(command.parts, "run", run)


def ended_file(folder: Path, number: int, status: int, outcome: str) -> Path:
    """Return a file of tests whose process ends with a status, its test with an outcome."""
    path = folder / f"test_{number}.py"
    path.write_text(json.dumps([status, outcome]))
    return path


def files_of(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(command, "TESTS", path.parent)


def test_without_a_gpu_it_says_so_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "gpu", lambda simulated: None)
    assert command.main(["--out", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    said = capsys.readouterr().err
    assert said.startswith("No GPU")
    assert said.count("\n") == 1


@pytest.mark.usefixtures("card", "processes")
@pytest.mark.parametrize(("outcome", "status"), [("passed", 0), ("failed", 1)])
def test_status_and_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: str, status: int
) -> None:
    files_of(monkeypatch, ended_file(tmp_path, 1, status, outcome))
    out = tmp_path / "out"
    assert command.main(["--tests-only", "--out", str(out)]) == status
    stored = json.loads((out / "gpu-results.json").read_text())
    assert stored["complete"]
    assert len(stored["files"]) == 1
    page = (out / "gpu-results.md").read_text()
    assert "a card" in page
    assert "its devices" in page
    assert sorted(each.name for each in out.iterdir()) == ["gpu-results.json", "gpu-results.md"]


@pytest.mark.usefixtures("processes")
def test_each_file_is_written_down_when_it_ends(tmp_path: Path) -> None:
    results, seen = Results(), []
    paths = [ended_file(tmp_path, 1, 0, "passed"), ended_file(tmp_path, 2, -6, "passed")]
    command.run_tests(results, paths, Deadline(60.0), lambda: seen.append(len(results.files)))
    assert seen == [1, 2]
    assert [each.failed for each in results.files] == [False, True]


def test_files_for_which_no_time_is_left(file: File) -> None:
    results = Results()
    command.run_tests(results, [file(PASSES)], Deadline(0.0), lambda: None)
    assert results.files[0].problem == "was not run: no time was left"
    assert results.failed


@pytest.mark.usefixtures("card", "processes")
def test_a_run_that_is_interrupted_leaves_a_page_that_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended_file(tmp_path, 2, 0, "interrupted")
    files_of(monkeypatch, ended_file(tmp_path, 1, 0, "passed"))
    with pytest.raises(KeyboardInterrupt):
        command.main(["--tests-only", "--out", str(tmp_path / "out")])
    page = (tmp_path / "out" / "gpu-results.md").read_text()
    assert "did not come to its end" in page
    assert "test_1.py::test_it" in page


def test_devices_that_cannot_be_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.parts, "run", lambda *_: Ended(-11, 1.0, "a\nb"))
    assert command.describe_devices(False) == "ended by SIGSEGV\na\nb"


@cases(
    "arguments",
    [
        ["--deadline", "0"],
        ["--deadline", "nan"],
        ["--simulated"],
        ["--tests-only", "--benchmark-only"],
        ["--workloads", "line"],
    ],
)
def test_arguments_that_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.parse_arguments(arguments)
    assert caught.value.code == 2


def test_quick_is_shorter() -> None:
    quick, whole = command.parse_arguments(["--quick"]), command.parse_arguments([])
    assert quick.rounds < whole.rounds
    assert quick.seconds < whole.seconds
