"""Files of several workers: the first one writes them, and all read them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi

import mirrored as mr


@pytest.mark.behaviour("workers-files")
@needs_mpi
def test_the_first_worker_writes_for_all(two_workers: dict[str, list[Any]]) -> None:
    first, second = two_workers["filed"]
    assert first["said"].count("Epoch") == 2
    assert second["said"] == ""
    assert first["files"] == second["files"]
    assert first["files"] == ["1.keras", "2.keras", "checkpoints", "checkpoints/ckpt-2", "log.csv"]
    (missing, full, *others), (*heard, none, other) = first["failures"], second["failures"]
    assert (missing[0], full[0]) == ("FileNotFoundError", "OSError")
    assert "File too large" in full[1]
    for (name, said), (_, text) in zip(heard, (missing, full), strict=True):
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
    backup, whole = tmp_path / "backup", tmp_path / "whole"
    tasks = [("resumed", (whole, None)), ("resumed", (backup, 2))]
    (never_ended, _), failed = launch(tasks, (1, 1), tmp_path)
    assert failed == [None, None]
    assert list(backup.iterdir())
    ((first, *others),) = launch([("resumed", (backup, None))], (2, 1, 1), tmp_path)
    assert not backup.exists()
    for name, value in never_ended.items():
        np.testing.assert_allclose(first[name], value, rtol=1e-5, atol=1e-6)
        for each in others:
            np.testing.assert_array_equal(each[name], first[name])
