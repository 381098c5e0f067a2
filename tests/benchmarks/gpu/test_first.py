"""The first minutes on a card: each look is one that can be taken, and is written when it ended."""

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import first, machine
from benchmarks.gpu.first import Look
from benchmarks.gpu.parts import Ended

LOOKS = list(first.looks(""))


def functions_of(path: Path) -> dict[str, set[str]]:
    """Return the names of a module's functions, with those of their arguments."""
    return {
        each.name: {argument.arg for argument in each.args.args}
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef)
    }


def test_there_is_something_to_run() -> None:
    assert len({each.title for each in LOOKS}) == len(LOOKS)
    for look in LOOKS:
        if look.facts:
            _, module, function, given, _ = look.arguments
            there = functions_of(first.TESTS / "scenarios" / f"{module}.py")
            assert there[function] >= json.loads(given).keys()
        elif "pytest" in look.arguments:
            assert Path(look.arguments[-1]).exists()
    assert sum("pytest" in each.arguments for each in LOOKS) >= 5


class Processes:
    """Processes that end at once: one that writes facts, one that leaves a page, and a crash."""

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[Any], float, Mapping[str, str]]] = []

    def __call__(self, command: Sequence[Any], limit: float, environment: Any) -> Ended:
        self.asked.append((command, limit, environment))
        what, path = command[1], Path(command[-1])
        if what == "facts":
            np.savez(path, answer=np.array([1.5, 2.5]), told=np.array("a word"))
        if what == "page":
            (path / "results.md").write_text("a page")
        return Ended(-6 if what == "crash" else 0, 1.25, "\n".join(["a line"] * 500))


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    made = Processes()
    monkeypatch.setattr(first.parts, "run", made)
    return made


FACTS = Look("facts", 50.0, ("facts", "{folder}/facts.npz"), {"CACHE": "{folder}"}, facts=True)
PAGE = Look("a page", 50.0, ("page", "{folder}"))
CRASH = Look("a crash", 50.0, ("crash", "{folder}/facts.npz"), facts=True)


def test_what_is_written(processes: Processes, tmp_path: Path) -> None:
    path = tmp_path / "first.txt"
    first.take_all([FACTS, PAGE, CRASH], 1.0, path, "a card")
    heading, *parts = path.read_text().split("\n\n## ")
    assert heading == "a card"
    assert [each.splitlines()[:2] for each in parts] == [
        ["facts", "ended with status 0, 1.2 s"],
        ["a page", "ended with status 0, 1.2 s"],
        ["a crash", "ended by SIGABRT, 1.2 s"],
    ]
    assert parts[0].endswith("a line\nanswer: [1.5 2.5]\ntold: a word")
    assert parts[0].count("a line") == first.MOST_LINES
    assert parts[1].endswith("a line\na page")
    command, limit, environment = processes.asked[0]
    assert Path(command[-1]).parent == Path(environment["CACHE"])
    assert limit == 50


def test_each_look_is_written_when_it_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, seen = tmp_path / "first.txt", []

    def run(command: Any, limit: float, environment: Any) -> Ended:
        seen.append(path.read_text() if path.exists() else "")
        if command[1] == "crash":
            raise KeyboardInterrupt
        return Ended(0, 0.0, "")

    monkeypatch.setattr(first.parts, "run", run)
    with pytest.raises(KeyboardInterrupt):
        first.take_all([PAGE, CRASH], 1.0, path, "a card")
    assert ["## a page" in text for text in seen] == [False, True]


def test_there_is_no_time(processes: Processes, tmp_path: Path) -> None:
    path = tmp_path / "first.txt"
    first.take_all([PAGE], 0.0, path, "a card")
    assert path.read_text().endswith("## a page\nnot taken: no time was left\n")
    assert not processes.asked


def test_the_command(processes: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(first.STAND_IN, "")
    monkeypatch.setattr(machine, "describe", lambda gpu: {"card": gpu["device_name"]})
    path = tmp_path / "first.txt"
    arguments = ["--only", "numbers", "Ctrl-C", "--out", str(path)]
    monkeypatch.setattr(machine, "gpu", lambda simulated: None)
    assert first.main(arguments) == 2
    assert not path.exists()
    monkeypatch.setattr(machine, "gpu", lambda simulated: {"device_name": "a card"})
    monkeypatch.setattr(first, "_shown", lambda path: iter(()))
    assert first.main(arguments) == 0
    assert path.read_text().startswith("card: a card\n\n## numbers below")
    functions = [command[3] for command, *_ in processes.asked]
    assert functions == ["small_numbers", "interrupted_in_a_full_queue"]


def test_a_stand_in_is_named_and_what_measures_is_simulated(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(first.STAND_IN, "emulated")
    monkeypatch.setattr(machine, "gpu", lambda simulated: {"device_name": simulated})
    monkeypatch.setattr(machine, "describe", lambda gpu: {"card": str(gpu["device_name"])})
    path = tmp_path / "first.txt"
    assert first.main(["--only", "choices", "speed", "--out", str(path)]) == 0
    assert path.read_text().startswith("card: True\nstands in for a card: emulated\n")
    assert all("--simulated" in command for command, *_ in processes.asked)
    assert len(processes.asked) == 2
