"""The driver: what takes part, what is skipped, and that one contender's failure is its own."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from case_table import cases

from benchmarks import environments, run
from benchmarks.environments import ALL, BY_NAME, IN_WORKERS, MIRRORED, PRODUCTS
from benchmarks.processes import Process
from benchmarks.results import Series
from benchmarks.workloads import TIMED, Workload

Stub = Callable[[str], list[str]]
ANSWER = "answer = {'fit_s': 0.1, 'facts': {'version': '1'}, 'us': 10.0, 'losses': [1.0, 1.0, 1.0]}"


class Stubs(run.Settings):
    """Settings whose contenders are stubs, by name."""

    commands: dict[str, list[str]]

    def start(self, contender: environments.Contender, workload: str, replicas: int) -> Process:
        return Process(self.commands[contender.name], self.limit)


def make_settings(commands: dict[str, list[str]], limit: float = 60.0) -> Stubs:
    here = {BY_NAME[name].environment: Path("here") for name in commands}
    settings = Stubs(list(commands), here, 2, 3, 0.1, limit)
    object.__setattr__(settings, "commands", commands)
    return settings


def test_missing_contenders_are_skipped_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ["--parts", "speed", "results", "all-reduce", "scaling"]
    run.main(["--quick", "--cache", str(tmp_path), *parts, "--workloads", "line"])
    printed = capsys.readouterr()
    for name in ("mirrored", "tensorflow", "torch", "jax"):
        assert f"- skipped: {name} (no environment" in printed.out
        assert f"Skipped: {name}" in printed.err
    assert list(tmp_path.iterdir()) == []


def test_those_not_asked_for_are_not_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.main(["--quick", "--cache", str(tmp_path), "--contenders", "jax", "--parts", "speed"])
    printed = capsys.readouterr().out
    assert "skipped: jax" in printed
    assert "skipped: torch" not in printed


def test_present_are_those_asked_for_with_an_environment() -> None:
    settings = run.Settings(["products", "jax"], {"mirrored": Path("here")}, 2, 3, 0.1, 9.0)
    assert settings.present(ALL) == [PRODUCTS]


@cases(("name", "replicas", "some"), [("wide", 2, 2), ("adam", 2, 0), ("wide", 3, 0)])
def test_two_workers_are_measured_on_as_many_replicas(name: str, replicas: int, some: int) -> None:
    asked = [each.name for each in IN_WORKERS]
    settings = run.Settings(asked, {"mirrored": Path("here")}, replicas, 3, 0.1, 9.0)
    assert [count for _, count in run.speed_entries(name, settings)] == [replicas] * some


def test_turns(stub: Stub) -> None:
    settings = make_settings({"mirrored": stub(ANSWER)})
    (series,) = run.measure_together(TIMED["line"], [(MIRRORED, 2)], settings)
    assert series.samples == [10.0, 10.0, 10.0]
    assert (series.replicas, series.problem, series.from_fit_s) == (2, None, 0.1)
    assert series.from_start_s is not None
    assert series.loss_error is not None
    assert series.epochs == round(0.1 / (10e-6 * TIMED["line"].steps))


@pytest.mark.parametrize("fails", ["first_step", "check", "measure"])
def test_one_that_hangs_leaves_the_others_be(stub: Stub, fails: str, tmp_path: Path) -> None:
    good = stub(ANSWER)
    script = Path(good[1]).rename(tmp_path / "good.py")
    hangs = stub(f"time.sleep(1000 if request['do'] == {fails!r} else 0); {ANSWER}")
    settings = make_settings({"mirrored": hangs, "jax": [sys.executable, str(script)]}, limit=2.0)
    entries = [(BY_NAME[name], 1) for name in ("mirrored", "jax")]
    bad, fine = run.measure_together(TIMED["line"], entries, settings)
    assert "timed out after 2 s" in str(bad.problem)
    assert bad.samples == []
    assert fine.samples == [10.0, 10.0, 10.0]


def test_outcomes_tell_problems(stub: Stub) -> None:
    settings = make_settings({"jax": stub("answer = {'error': 'ValueError: uneven'}")})
    outcomes = run.measure_outcomes(settings)
    assert [each.replicas for each in outcomes] == [1, 2, 3, 4]
    assert {each.problem for each in outcomes} == {"ValueError: uneven"}


@pytest.mark.parametrize(
    "arguments",
    [["--replicas", "1"], ["--workloads", "none"], ["--contenders", "none"], ["--parts", "x"]],
)
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.parse_arguments(arguments)
    assert "error" in capsys.readouterr().err


def test_quick_is_only_printed() -> None:
    assert run.parse_arguments(["--quick"]).out is None
    full = run.parse_arguments([])
    assert full.out.parts[-2:] == ("reference", "benchmarks.md")
    assert full.rounds > run.parse_arguments(["--quick"]).rounds


def test_contenders_have_their_scripts() -> None:
    folder = {path.name for path in environments.SCRIPTS.glob("*.py")}
    others = {"__init__.py", "protocol.py", "workers.py", "blas.py", "files.py", "optimizers.py"}
    assert {each.script.name for each in ALL} == folder - others


def test_pairs() -> None:
    assert environments.pairs(["jax=/a=b"], "--environment", ["jax"]) == {"jax": "/a=b"}
    for wrong in ("jax", "none=/a"):
        with pytest.raises(SystemExit, match="--environment"):
            environments.pairs([wrong], "--environment", ["jax"])


def test_installed_size(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    sizes = {"numpy/a.py": 10, "numpy/__pycache__/a.pyc": 100, "pip/b.py": 1000, "c.py": 5}
    sizes["mpi4py/MPI.so"] = 50
    for name, size in sizes.items():
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    assert environments.installed_size(tmp_path) == 15
    assert environments.installed_size(tmp_path / "none") is None


def test_one_that_fails_later_keeps_its_rounds(stub: Stub) -> None:
    fails = "{'error': 'ValueError: no'} if request.get('epochs', 1) > 1 else answer"
    settings = make_settings({"mirrored": stub(f"{ANSWER}; answer = {fails}")})
    (series,) = run.measure_together(TIMED["line"], [(MIRRORED, 1)], settings)
    assert series.problem == "ValueError: no (round 1 of 3)"
    assert series.samples == []


def test_what_was_kept_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def measure_together(workload: Workload, *_: object) -> list[Series]:
        measured.append(workload.name)
        if workload.name == "wide" and measured.count("wide") == 1:
            raise KeyboardInterrupt
        return [Series("mirrored", 1, [1.0])]

    monkeypatch.setattr(run, "measure_together", measure_together)
    monkeypatch.setattr(run, "find_environments", lambda _: ({"mirrored": tmp_path}, {}))
    monkeypatch.setattr(run, "measure_imports", lambda *_: {})
    file = tmp_path / "kept.json"
    line = ["--quick", "--json", str(file), "--parts", "speed", "--workloads", "line", "wide"]
    with pytest.raises(KeyboardInterrupt):
        run.main(line)
    assert list(json.loads(file.read_text())["speed"]) == ["line"]
    run.main(line)
    assert measured == ["line", "wide", "wide"]
    assert list(json.loads(file.read_text())["speed"]) == ["line", "wide"]
    with pytest.raises(SystemExit, match="other conditions"):
        run.main([*line, "--rounds", "4"])
