"""Results of calls that are over: a new process gets them, unless some cannot be handed on."""

from types import SimpleNamespace
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import finished_runs
from mirrored.distribute.finished_runs import FinishedRuns
from mirrored.distribute.per_replica import PerReplica


def workers(known: Any = None, policy: str = "replace") -> Any:
    welcome = None if known is None else (known, None)
    return SimpleNamespace(welcome=welcome, on_failure=policy)


def fail() -> None:
    raise ArithmeticError("a run failed")


def test_a_new_process_gets_the_results_in_order() -> None:
    runs, calls = FinishedRuns(), iter(range(9))
    assert runs.run(workers(), lambda: [next(calls)]) == (False, [0])
    nested = runs.run(workers(), lambda: runs.run(workers(), lambda: next(calls)))
    assert nested == (False, (False, 1))  # The call within it is a part of it.
    new = FinishedRuns()
    joining = workers([*runs.results])
    assert [new.run(joining, fail) for _ in range(2)] == [(True, [0]), (True, (False, 1))]
    assert new.run(joining, lambda: next(calls)) == (False, 2)
    assert new.results[:2] == runs.results
    assert not new.refusal


def test_nothing_is_kept_where_nobody_joins() -> None:
    runs = FinishedRuns()
    assert runs.run(workers(policy="continue"), lambda: 1) == (False, 1)
    assert runs.results == []


@pytest.mark.parametrize(
    ("result", "refusal"),
    [
        (lambda: 1, "a result that cannot be pickled"),
        ("x" * 999, "results before of more than"),
    ],
)
def test_results_that_are_not_kept(
    result: Any, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished_runs, "_MOST", 500)
    runs = FinishedRuns()
    assert runs.run(workers(), lambda: result) == (False, result)
    assert runs.refusal.startswith(refusal)


def test_variables_and_failures_are_not_kept() -> None:
    runs, variable = FinishedRuns(), mr.Variable(1.0)
    assert runs.run(workers(), lambda: {"v": variable})[1]["v"] is variable
    assert runs.refusal.startswith("a result with variables")
    runs = FinishedRuns()
    with pytest.raises(ArithmeticError):
        runs.run(workers(), fail)
    assert runs.refusal == "a run that failed before"


def test_an_elastic_step_refuses_a_batch_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy: Any = mr.distribute.MultiWorkerMirroredStrategy()
    step = mr.distribute.elastic(lambda batch: batch)
    batch = PerReplica([mr.constant(1.0)])
    assert step(batch) is batch
    monkeypatch.setattr(strategy.workers, "on_failure", "continue")
    with pytest.raises(ValueError, match="taken before an elastic step"):
        step({"x": [batch]})
    assert step(1) == 1
