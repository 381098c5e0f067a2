"""All-reduces in processes that end well, fail, hang or say too little, each with what it found."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from benchmarks.gpu import all_reduces, all_reduces_process, report
from benchmarks.gpu.all_reduces import Kind, kinds
from benchmarks.gpu.parts import Deadline, Ended
from benchmarks.gpu.results import Results
from benchmarks.gpu.speed import NO_TIME

ONE = Kind("NcclAllReduce", (2,), ranks=True)
ROW = {
    "collective": "NcclAllReduce",
    "ranks": 2,
    "nbytes": 1024,
    "count": 256,
    "dtype": "float32",
    "seconds": 1e-5,
    "wrong": 0,
}
SAID = json.dumps({"row": ROW})
Run = Callable[..., Results]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return ``measured(ended, ...)``: results of kinds whose processes end so, in turn."""

    def run(*ended: Ended, seconds: float = 60.0) -> Results:
        left = iter(ended)
        monkeypatch.setattr(all_reduces.parts, "run", lambda *_: next(left))
        results = Results()
        found = [ONE] * max(1, len(ended))
        all_reduces.measure(results, found, Deadline(seconds), lambda: None)
        return results

    return run


def test_kinds() -> None:
    one, four = kinds(1), kinds(4)
    assert {each.where for each in one} == {
        "2 virtual GPUs of one card",
        "4 virtual GPUs of one card",
        "2 ranks of one card",
        "4 ranks of one card",
    }
    assert [each.collective for each in four if each.where == "4 cards"] == [
        "NcclAllReduce",
        "HierarchicalCopyAllReduce",
        "ReductionToOneDevice",
    ]
    assert four[3:] == one


def test_sizes() -> None:
    assert (all_reduces.SIZES[0], all_reduces.SIZES[-1]) == (1 << 10, 1 << 28)


@pytest.mark.parametrize(
    ("ended", "rows", "problem"),
    [
        (Ended(0, 1.0, f"a library's line\n{SAID}\n{SAID}\n"), 2, None),
        (Ended(0, 1.0, '{"problem": "the reason"}\n'), 0, "the reason"),
        (Ended(1, 1.0, f'{SAID}\n{{"problem": "Error: it"}}\n'), 1, "Error: it"),
        (Ended(None, 20.0, f"{SAID}\nlast\n"), 1, "not ended after 20 s, and killed: last"),
        (Ended(None, 20.0, f"{SAID}\n"), 1, "not ended after 20 s, and killed"),
        (Ended(-11, 1.0, f"{SAID}\n{SAID[:20]}"), 1, f"ended by SIGSEGV: {SAID[:20]}"),
    ],
)
def test_what_a_process_leaves(measured: Run, ended: Ended, rows: int, problem: str | None) -> None:
    (found,) = measured(ended).all_reduces
    assert (found.rows, found.problem) == ([ROW] * rows, problem)


def test_one_that_fails_does_not_stop_the_next(measured: Run) -> None:
    first, second = measured(Ended(-6, 1.0, ""), Ended(0, 1.0, SAID)).all_reduces
    assert first.problem == "ended by SIGABRT"
    assert (len(second.rows), second.problem) == (1, None)


def test_no_time_left(measured: Run) -> None:
    (found,) = measured(seconds=0.0).all_reduces
    assert (found.rows, found.problem) == ([], NO_TIME)


def test_what_a_process_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def run(command: Sequence[Any], limit: float, environment: dict[str, str]) -> Ended:
        seen.append((json.loads(command[-1]), limit, environment))
        return Ended(0, 1.0, "")

    monkeypatch.setattr(all_reduces.parts, "run", run)
    written: list[int] = []
    results = Results()
    asked = [ONE, Kind("ReductionToOneDevice", (4,))]
    all_reduces.measure(
        results,
        asked,
        Deadline(5.0),
        lambda: written.append(len(results.all_reduces)),
        quick=True,
    )
    assert written == [1, 2]
    (first, limit, variables), (second, _, others) = seen
    assert (first["parts"], first["steps"]) == ([2], [])
    assert first["sizes"] == second["sizes"] == all_reduces.QUICK_SIZES
    assert 0 < limit <= 5.0
    assert (variables[all_reduces.MULTI_RANK], others[all_reduces.MULTI_RANK]) == ("1", "")


def test_the_page(measured: Run) -> None:
    step = json.dumps({"step": {"digits": 123.0}})
    results = measured(Ended(0, 1.0, f"{SAID}\n{step}"), Ended(-6, 1.0, ""))
    text = report.markdown(results, 0.2)
    assert "2 ranks of one card:\n\n```text\ncollective " in text
    assert re.search(r"NcclAllReduce +1024 +10\.0 +0\.10 +0\.10 +0$", text, re.MULTILINE)
    assert "\nNcclAllReduce             ended by SIGABRT\n```" in text
    assert "| NcclAllReduce | 2 ranks of one card | 123 |" in text
    assert "All-reduces" not in report.markdown(Results(), 0.2)


@pytest.mark.slow
def test_a_process_on_simulated_gpus() -> None:
    results = Results(simulated=True)
    asked = [Kind("ReductionToOneDevice", (2,))]
    all_reduces.measure(results, asked, Deadline(60.0), lambda: None, quick=True)
    (summed,) = results.all_reduces
    assert [row["nbytes"] for row in summed.rows] == all_reduces.QUICK_SIZES
    assert [row["wrong"] for row in summed.rows] == [0, 0, 0]


@pytest.mark.slow
def test_a_process_without_cards_refuses_nccl() -> None:
    results = Results(simulated=True)
    all_reduces.measure(results, [ONE], Deadline(60.0), lambda: None, quick=True)
    (refused,) = results.all_reduces
    assert refused.problem == "NCCL sums only between GPUs that are not simulated."


@pytest.mark.slow
def test_ranks_of_emulated_cards(
    emulated_cuda: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two ranks of one card and one of another."""
    parts = [2, 1]
    emulated_cuda(cards=len(parts))
    monkeypatch.setenv(all_reduces.MULTI_RANK, "1")
    monkeypatch.setattr(all_reduces_process, "MEGABYTES", 256)
    monkeypatch.setattr(all_reduces_process, "STEPS", 2)
    asked = {"parts": parts, "collective": "NcclAllReduce", "simulated": False}
    all_reduces_process.main({**asked, "sizes": [1024, 1 << 40], "steps": ["digits"]})
    row, problem, step = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["row"]["ranks"], row["row"]["nbytes"], row["row"]["wrong"]) == (sum(parts), 1024, 0)
    assert problem == {"problem": f"a device has too little memory for {1 << 40} bytes"}
    assert step["step"]["digits"] > 0
