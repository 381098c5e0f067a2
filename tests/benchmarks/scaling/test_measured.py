"""What is measured on this machine, what is kept of it, and what the model makes of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scaling_figures import SUMS, found

from benchmarks import run
from benchmarks.environments import Contender
from benchmarks.processes import Process
from benchmarks.scaling.measured import (
    ENTRIES,
    LAYOUTS,
    SIZES,
    WORKLOADS,
    Measured,
    layout,
    measure,
    settings_of,
)
from benchmarks.workloads import TIMED

Stub = Callable[[str], list[str]]


def test_layouts() -> None:
    assert layout(4, apart=True).options == ("--workers", "4", "--apart")
    assert layout(2, apart=False).options == ("--workers", "2")
    assert {workers for _, workers in LAYOUTS.values()} == {2, 4}
    assert len({(each.name, replicas) for each, replicas in ENTRIES}) == len(ENTRIES)


def test_prediction() -> None:
    size = TIMED["digits"].parameter_bytes
    expected = 100e-6 + SUMS.seconds(size + 4)
    assert found().predicted("digits", "memory-2") == pytest.approx(expected)
    assert found().predicted("digits", "memory-4") is None
    assert found().predicted("wide", "memory-2") is None


def test_it_is_plain_data() -> None:
    stored = json.loads(json.dumps(found().to_json()))
    assert Measured.from_json(stored) == found()


def test_what_was_found_is_not_measured_again(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, kept = [], []
    command = stub(f"answer = {{'seconds': {[1.0] * len(SIZES)}}}")
    monkeypatch.setattr(
        run, "measure_together", lambda workload, *_: measured.append(workload.name) or []
    )

    class Stubs(run.Settings):
        def start(self, contender: Contender, workload: str, replicas: int) -> Process:
            measured.append(contender.name)
            if contender.name == "messages-4":
                return Process([*command[:1], "-c", "raise SystemExit('no')"], 60.0)
            return Process(command, 60.0)

    settings = Stubs([], {"mirrored": Path("here")}, 2, 3, 0.1, 60.0)
    figures = found()
    measure(figures, settings, lambda: kept.append(len(measured)))
    assert measured == [
        *(name for name in WORKLOADS if name != "digits"),
        *(name for name in LAYOUTS if name != "memory-2"),
    ]
    assert figures.sums["memory-4"] == [1.0] * len(SIZES)
    assert "no" in figures.problems["messages-4"]
    assert "memory-4" not in figures.problems
    assert kept == list(range(1, 7))


def test_settings() -> None:
    settings = settings_of({"mirrored": Path("here")}, 3, 0.1, 9.0)
    assert (settings.rounds, settings.seconds, settings.limit) == (3, 0.1, 9.0)
