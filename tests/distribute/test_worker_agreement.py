"""Workers whose programs differ hear of it before they sum, and all of one that fails."""

from pathlib import Path
from typing import Any

import pytest
from launching import launch, needs_mpi
from worker_tasks import DIFFERING


@needs_mpi
def test_programs_that_differ(two_workers: dict[str, list[Any]]) -> None:
    (*first, shorter), (*second, longer) = two_workers["differing"]
    assert first == second
    for text in (shorter, longer):
        assert "worker 0 on host" in text
        assert "bucket 1 of 1" in text
        assert "gather of objects (the end of an epoch's steps to train)" in text
    for text, (_, what, other) in zip(first, DIFFERING, strict=True):
        assert what in text
        assert other in text
        if text != "nothing":
            assert "on worker 0" in text
            assert "on worker 1" in text


# What the worker that fails raises, and what the others hear, and in which step.
FAILURES = {
    "loss": ("OSError", "OSError: the disk is gone", "step 3 of epoch 1"),
    "callback": (
        "ZeroDivisionError",
        "ZeroDivisionError: no logs",
        "what follows step 3 of epoch 1",
    ),
    "exit": ("SystemExit", "SystemExit: 3", "what follows step 3 of epoch 1"),
    "interrupt": ("KeyboardInterrupt", "KeyboardInterrupt", "what follows step 3 of epoch 1"),
    "data": ("ValueError", "ValueError: a bad record", "what follows step 3 of epoch 1"),
    "own data": ("ValueError", "ValueError: a bad record", "what follows step 9 of epoch 1"),
    "fewer": ("WorkerError", "the end of an epoch's steps to train", None),
    "stop": ("WorkerError", "the end of an epoch's steps to train", None),
}


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(("program", "hosts"), [("failing", None), ("failing_meanwhile", "a,b,c")])
def test_all_hear_of_a_worker_that_is_slow_or_fails(
    tmp_path: Path, program: str, hosts: str | None
) -> None:
    tasks = [("straggling", (0.01, 0.01, 0.05)), (program, list(FAILURES))]
    straggled, failed = launch(tasks, (1, 1, 1), tmp_path, hosts=hosts, any_status=True)
    # The first one tells of the slow one, once.
    assert [len(said) for said, _ in straggled] == [1, 0, 0]
    assert straggled[0][0][0].startswith("Worker 2 on host")
    for _, times in straggled:
        assert times == pytest.approx((1.0, 1.0, 5.0), rel=0.1)
    *others, last = (dict(zip(FAILURES, each, strict=True)) for each in failed)
    for kind, (raised, said, step) in FAILURES.items():
        assert last[kind][0] == raised, kind
        for each in others:
            name, text, heard = each[kind]
            assert (name, heard) == ("WorkerError", step), kind
            assert said in text
            assert "orker 2 on host" in text
