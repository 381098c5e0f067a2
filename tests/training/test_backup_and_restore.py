"""A `fit` that something ended goes on in another process as if nothing had been."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import WeightsFileError

X = np.arange(12.0, dtype=np.float32)[:, np.newaxis] / 12
OPTIONS: dict[str, Any] = {"batch_size": 4, "epochs": 6, "verbose": 0, "shuffle": False}
C = mr.callbacks


@pytest.fixture
def make(strategy: mr.MirroredStrategy) -> Callable[[], mr.Model]:
    """Return a function that makes a model as a new process would."""

    def made() -> mr.Model:
        mr.layers.reset_names()
        mr.random.set_seed(3)
        with strategy.scope():
            layers = [mr.layers.Input(shape=(1,)), mr.layers.Dense(2), mr.layers.Dropout(0.5)]
            model = mr.Sequential([*layers, mr.layers.Dense(1)])
            model.compile(mr.optim.SGD(0.1, momentum=0.9, use_ema=True), "mse")
        return model

    return made


def ended(model: mr.Model, backup: C.BackupAndRestore, step: int) -> None:
    """Train until so many steps were begun, and fail."""
    steps = iter(range(99))

    def fail(*_: Any) -> None:
        if next(steps) == step:
            raise KeyError("ended")

    fails = C.LambdaCallback(on_train_batch_begin=fail)
    with pytest.raises(KeyError, match="ended"):
        model.fit(X, X, callbacks=[backup, fails], **OPTIONS)


@pytest.mark.behaviour("backup")
@pytest.mark.parametrize(
    ("double", "step", "epochs"), [(False, 7, [2, 3, 4, 5]), (True, 1, [0, 1, 2, 3, 4, 5])]
)
def test_it_goes_on(
    double: bool, step: int, epochs: list[int], make: Callable[[], mr.Model], tmp_path: Path
) -> None:
    whole, folder = make(), tmp_path / "backup"
    whole.fit(X, X, **OPTIONS)
    ended(make(), C.BackupAndRestore(folder, double_checkpoint=double), step)
    model = make()
    history = model.fit(
        X, X, callbacks=[C.BackupAndRestore(folder, double_checkpoint=double)], **OPTIONS
    )
    assert history.epoch == epochs
    assert int(model.optimizer.iterations) == int(whole.optimizer.iterations)
    for one, other in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not folder.exists()
    assert model.fit(X, X, callbacks=[C.BackupAndRestore(folder)], **OPTIONS).epoch == [*range(6)]


@pytest.mark.behaviour("backup")
def test_in_the_middle_of_an_epoch(make: Callable[[], mr.Model], tmp_path: Path) -> None:
    """As in Keras: the weights are those of the step, and the epoch begins anew."""
    ended(make(), C.BackupAndRestore(tmp_path / "backup", 2), 5)
    model, seen = make(), []
    looks = C.LambdaCallback(on_epoch_begin=lambda *_: seen.append(int(model.optimizer.iterations)))
    backup = C.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)
    assert model.fit(X, X, callbacks=[backup, looks], **OPTIONS).epoch == [1, 2, 3, 4, 5]
    assert seen == [4, 7, 10, 13, 16]
    assert model.fit(X, X, callbacks=[backup, looks], **OPTIONS).epoch == []
    assert [backup.steps_between(kind, 12) for kind in ("train", "test")] == [12, 12]


@pytest.mark.behaviour("backup")
@pytest.mark.parametrize("double", [False, True])
def test_a_spoilt_backup(double: bool, make: Callable[[], mr.Model], tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    ended(make(), C.BackupAndRestore(folder, double_checkpoint=double), 7)
    last = folder / "latest"
    last.write_bytes(last.read_bytes()[:-9])
    model, backup = make(), C.BackupAndRestore(folder, double_checkpoint=double)
    if double:
        assert model.fit(X, X, callbacks=[backup], **OPTIONS).epoch == [1, 2, 3, 4, 5]
        assert os.listdir(folder) == ["notes"]  # What is not its own stays.
    else:
        with pytest.raises(WeightsFileError, match="truncated, corrupt") as caught:
            model.fit(X, X, callbacks=[backup], **OPTIONS)
        assert caught.value.__notes__ == [f"To begin at the first epoch, delete {str(folder)!r}."]
        assert int(model.optimizer.iterations) == 0


@cases(
    ("arguments", "error", "text"),
    [
        (("",), ValueError, "Empty `backup_dir` argument passed"),
        ((3,), TypeError, "Received: 3"),
        (("a", "steps"), ValueError, "save_freq=steps. Expected either 'epoch' or an integer"),
        (("a", False), ValueError, "save_freq=False"),
        (("a", 0), ValueError, "save_freq=0"),
    ],
)
def test_what_is_refused(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        C.BackupAndRestore(*arguments)


@cases(("frequency", "steps"), [("epoch", 12), (8, 4), (24, 12)])
def test_steps_are_cut_where_it_may_save_alone(frequency: Any, steps: int) -> None:
    backup = C.BackupAndRestore("a", frequency)
    backup.set_params({"steps": 12})
    assert [backup.steps_between(kind, 12) for kind in ("train", "test")] == [steps, 12]
    backup.set_params({"steps": None})
    assert backup.steps_between("train", 12) == (12 if frequency == "epoch" else 1)
