"""A disk that fills while a callback writes: a clear error, and nothing that was there is lost.

A limit on the size of files stands for the disk: it lets a part of what is written in, as a disk
does.
"""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import written

import mirrored as mr

FULL = 2  # The epoch at whose end the disk is full.


class Fills(mr.callbacks.Callback):
    """Lets files grow by so many bytes more at the end of an epoch."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__()
        self.path, self.room = path, room

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == FULL:
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            there = [*self.path.iterdir()] if self.path.is_dir() else [self.path]
            limit = max(each.stat().st_size for each in there) + self.room
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))


@pytest.fixture(autouse=True)
def room_again() -> Iterator[Callable[[], None]]:
    """Return what empties the disk, and do it at the end."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def empty() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    yield empty
    empty()


@pytest.mark.behaviour("full-disks")
@pytest.mark.parametrize("room", [0, 9])
def test_a_log(
    room: int,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    room_again: Callable[[], None],
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.csv"
    log, model = mr.callbacks.CSVLogger(path, append=True), make_model(strategy)
    with pytest.raises(OSError, match=r"File too large.*log\.csv") as caught:
        train(model, epochs=9, callbacks=[Fills(path, room), log])
    room_again()
    assert caught.value.__notes__ == ["The log of epoch 3 is not in it, all before it are."]
    assert [line[:2] for line in path.read_text().splitlines()] == ["ep", "0,", "1,"]
    other = make_model(strategy)
    train(other, epochs=FULL + 1)
    for one, same in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(one, same)
    train(model, epochs=4, initial_epoch=2, callbacks=[log])
    assert [line[:2] for line in path.read_text().splitlines()] == ["ep", "0,", "1,", "2,", "3,"]


@pytest.mark.behaviour("full-disks")
def test_summaries(
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    room_again: Callable[[], None],
    tmp_path: Path,
) -> None:
    board, model = mr.callbacks.TensorBoard(tmp_path), make_model(strategy)
    with pytest.raises(OSError, match=r"File too large: .*train/events\.out"):
        train(model, epochs=9, callbacks=[Fills(tmp_path / "train", 20), board])
    room_again()
    (spoilt,) = (tmp_path / "train").iterdir()
    spoilt.unlink()
    assert train(model, epochs=2, callbacks=[board]).epoch == [0, 1]
    tags = {tag for tag, *_ in written(tmp_path / "train")}
    assert tags == {"epoch_loss", "epoch_accuracy", "epoch_learning_rate"}


@pytest.mark.behaviour("full-disks")
@pytest.mark.parametrize("name", ["best.safetensors", "best.weights.h5", "best.keras"])
def test_a_checkpoint(
    name: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    room_again: Callable[[], None],
    tmp_path: Path,
) -> None:
    path = tmp_path / name
    save = mr.callbacks.ModelCheckpoint(
        path, "loss", save_best_only=True, save_weights_only=path.suffix != ".keras", mode="max"
    )
    grows = mr.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: logs.update(loss=epoch))
    model, kept = make_model(strategy), []
    keeps = mr.callbacks.LambdaCallback(on_epoch_end=lambda *_: kept.append(path.read_bytes()))
    callbacks = [grows, Fills(path, -200), save, keeps]
    with pytest.raises(OSError, match=rf"File too large.*{name}"):
        train(model, epochs=9, callbacks=callbacks)
    room_again()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == kept[-1] != kept[0]
    assert save.best == FULL - 1  # What is not in the file is not the best.
    train(model, epochs=FULL + 1, initial_epoch=FULL, callbacks=[grows, save, keeps])
    assert save.best == FULL
    assert path.read_bytes() != kept[1]
    model.load_weights(path)


def test_a_backup(
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    room_again: Callable[[], None],
    tmp_path: Path,
) -> None:
    """Training is resumed at the epoch whose backup is there."""
    folder = tmp_path / "backup"
    backup, model = mr.callbacks.BackupAndRestore(folder), make_model(strategy)
    with pytest.raises(OSError, match="File too large"):
        train(model, epochs=9, callbacks=[Fills(folder, -200), backup])
    room_again()
    other = make_model(strategy)
    assert train(other, epochs=FULL + 2, callbacks=[backup]).epoch == [*range(FULL + 2)]
    straight = make_model(strategy)
    train(straight, epochs=FULL + 2)
    for one, same in zip(other.get_weights(), straight.get_weights(), strict=True):
        np.testing.assert_array_equal(one, same)
