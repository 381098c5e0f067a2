"""Workers whose programs differ hear of it before they sum, and all of one that fails."""

from pathlib import Path

import pytest
from launching import launch, needs_mpi

CASES = [
    ({"momentum": 0.25}, "settings of optimizers differ", "SGD.momentum = 0.25 on worker 1"),
    ({"activation": "relu"}, "settings of layers differ", "Dense.activation = 'relu' on worker 1"),
    ({"units": 5}, "variables differ", "(2, 5)"),
    ({"batch_size": 2}, "batches differ", "2 examples"),
    ({"momentum": 0.75, "eagerly": True}, "settings of optimizers differ", "0.75"),
    ({"value": 0.5}, "for the first batch of an epoch to train, values of variables", "bias"),
    ({"rate": 0.5}, "for the first batch of an epoch to train, settings", "learning_rate = 0.5"),
    ({"loss": 3.0}, "for the step that trains, operations on 2 examples", "float32(3.0)"),
    ({"function": "sin"}, "the function 'step', operations on inputs of shapes [(2,)]", "Sin"),
    ({"batches": 2}, "for the first batch of a dataset, batches differ", "4 examples (check"),
    ({"order": 3}, "nothing", "nothing"),
    ({"alike": "of the first"}, "nothing", "nothing"),
    ({}, "nothing", "nothing"),
]


@needs_mpi
def test_programs_that_differ(tmp_path: Path) -> None:
    # After the last one the workers are no longer connected: they are in calls that differ.
    given = [*(case for case, _, _ in CASES), {"rows": 4}]
    (results,) = launch([("differing", given)], (1, 1), tmp_path)
    (*first, shorter), (*second, longer) = results
    assert first == second
    for text in (shorter, longer):
        assert "worker 0 on host" in text
        assert "bucket 1 of 1" in text
        assert "gather of objects (the end of an epoch's steps to train)" in text
    for text, (_, what, other) in zip(first, CASES, strict=True):
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
