"""A series of checkpoints: which are kept, and that nothing else in the folder is touched."""

import os
from pathlib import Path
from typing import Any

import pytest

import mirrored as mr


@pytest.fixture
def checkpoint() -> mr.train.Checkpoint:
    return mr.train.Checkpoint(epoch=mr.Variable(0))


def test_the_oldest_go(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    manager = mr.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    assert (manager.checkpoints, manager.latest_checkpoint) == ([], None)
    assert manager.directory == str(folder)
    paths = [manager.save() for _ in range(4)]
    assert manager.checkpoints == paths[-2:] == [f"{folder}/ckpt-3", f"{folder}/ckpt-4"]
    assert manager.latest_checkpoint == paths[-1]
    assert sorted(os.listdir(folder)) == ["ckpt-3", "ckpt-4"]


def test_a_second_program_goes_on(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 3)
    assert manager.restore_or_initialize() is None
    for epoch in range(2):
        checkpoint.epoch.assign(epoch)
        manager.save()
    again = mr.train.Checkpoint(epoch=mr.Variable(9))
    manager = mr.train.CheckpointManager(again, tmp_path, 3)
    assert manager.restore_or_initialize() == f"{tmp_path}/ckpt-2"
    assert int(again.epoch) == 1
    assert manager.save() == f"{tmp_path}/ckpt-3"


def test_numbers_of_ones_own(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    """The order is that of saving, whatever the numbers are."""
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 2, checkpoint_name="step")
    numbers: list[Any] = [30, mr.Variable(10), 20]
    saved = [manager.save(number) for number in numbers]
    assert manager.checkpoints == saved[1:] == [f"{tmp_path}/step-10", f"{tmp_path}/step-20"]


def test_other_files_stay(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("text")
    other = checkpoint.save(tmp_path / "best")
    written = checkpoint.write(tmp_path / "ckpt-0")
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 1)
    for _ in range(2):
        manager.save()
    assert manager.checkpoints == [f"{tmp_path}/ckpt-3"]
    kept = ["notes", os.path.basename(other), os.path.basename(written), "ckpt-3"]
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


def test_all_are_kept(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, None)
    assert [manager.save() for _ in range(7)] == manager.checkpoints


def test_a_save_that_fails_deletes_nothing(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 1)
    path = manager.save()

    def full(descriptor: int) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            manager.save()
    assert manager.checkpoints == [path]


@pytest.mark.parametrize("most", [0, -1, 1.5, "2", True])
def test_how_many_to_keep(most: Any, checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    message = f"^Expected a positive integer or `None` for `max_to_keep`, got {most!r}"
    with pytest.raises(ValueError, match=message):
        mr.train.CheckpointManager(checkpoint, tmp_path, most)
