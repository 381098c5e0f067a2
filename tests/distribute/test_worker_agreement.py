"""Workers whose programs differ hear of it before they sum, and all of one that fails."""

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi
from worker_tasks import DIFFERING

import mirrored as mr
from mirrored.distribute.worker_agreement import own_devices
from mirrored.workers.worker import Workers


@pytest.mark.behaviour("workers-alike")
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


@pytest.mark.parametrize(
    ("cards", "hosts", "rank", "local_rank", "own"),
    [
        (4, ("a", "a"), 0, 0, [0, 2]),
        (4, ("a", "a"), 1, 1, [1, 3]),
        (3, ("a", "a"), 1, 1, [1]),
        (2, ("a", "b", "b"), 2, 1, [1]),
        (2, ("b", "a", "b", "b"), 3, 2, [0]),  # More workers than cards: some share one.
        (2, ("a", "b"), 1, 0, None),
        (0, ("a", "a"), 1, 1, None),
    ],
)
def test_workers_of_a_host_share_out_its_cards(
    cards: int,
    hosts: Sequence[str],
    rank: int,
    local_rank: int,
    own: list[int] | None,
    emulated_cuda: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    emulated_cuda(cards=cards)
    worker = Workers(rank, tuple(hosts), local_rank)
    found = own_devices(worker)
    assert (found and [each.index for each in found]) == own
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert own_devices(worker) is None


def test_simulated_cards_are_each_workers_own(simulated_gpus: Callable[..., Any]) -> None:
    simulated_gpus(2)
    assert own_devices(Workers(0, ("a", "a"))) is None


@pytest.mark.behaviour("workers-files")
@needs_mpi
def test_the_first_worker_writes_for_all(two_workers: dict[str, list[Any]]) -> None:
    first, second = two_workers["filed"]
    assert first["said"].count("Epoch") == 2
    assert second["said"] == ""
    assert first["files"] == second["files"]
    assert first["files"] == ["1.keras", "2.keras", "checkpoints", "checkpoints/ckpt-2", "log.csv"]
    (missing, *full, _, _), (*heard, none, other) = first["failures"], second["failures"]
    others = first["failures"][-2:]
    assert [missing[0], *(name for name, _ in full)] == ["FileNotFoundError", "OSError", "OSError"]
    assert all("File too large" in text for _, text in full)
    for (name, said), (_, text) in zip(heard, (missing, *full), strict=True):
        assert name == "WorkerError"
        assert said.startswith("Worker 0 on host")
        assert text in said
    assert others == [none, other]  # Both raise the same, and nothing is restored.
    assert re.search(
        r"different files: a file of \d+ bytes .* and a file that cannot be read", none[1]
    )
    assert re.search(r"different files: a file of \d+ bytes .* and a file of \d+ bytes", other[1])
    for worker in (first, second):
        assert worker["own"]
        assert worker["unchanged"]
        for name, value in worker["kept"].items():
            np.testing.assert_array_equal(worker["restored"][name], value)
            np.testing.assert_array_equal(first["kept"][name], value)

    mr.config.experimental.set_simulated_gpus(2)  # Restored on another number of replicas.
    with mr.MirroredStrategy().scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
    mr.train.Checkpoint(model=model).restore(first["path"]).expect_partial()
    for variable, value in zip(model.variables, first["kept"].values(), strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


@needs_mpi
@pytest.mark.slow
def test_a_training_goes_on_with_other_workers(tmp_path: Path) -> None:
    whole, backups = tmp_path / "whole", {tmp_path / "failed": 5, tmp_path / "signalled": -4}
    tasks = [("resumed", (whole, None)), *[("resumed", backup) for backup in backups.items()]]
    (never_ended, _), *ended = launch(tasks, (1, 1), tmp_path)
    assert ended == [[None, None]] * 2
    assert all(list(backup.iterdir()) for backup in backups)
    resumed = launch([("resumed", (backup, None)) for backup in backups], (2, 1, 1), tmp_path)
    assert not any(backup.exists() for backup in backups)
    for name, value in never_ended.items():
        for weights in itertools.chain(*resumed):  # After a step, on other workers: same bits.
            np.testing.assert_array_equal(weights[name], value)
