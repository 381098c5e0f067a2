"""A series of checkpoints: which are kept, and that nothing else in the folder is touched."""

import os
from pathlib import Path
from typing import Any

import numpy as np
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


@pytest.mark.parametrize("name", ["run/ck", "", "/ck", "ck/", "a\0b", b"ck", None, 3], ids=repr)
def test_names_of_no_file(name: Any, checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the first part of the file names, without folders\. Received: "
    ):
        mr.train.CheckpointManager(checkpoint, tmp_path, 1, checkpoint_name=name)


@pytest.mark.parametrize("given", [mr.Sequential(), 5, None], ids=["a model", "a number", "None"])
def test_what_is_no_checkpoint(given: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^`checkpoint` must be a mr\.train\.Checkpoint .*Rec"):
        mr.train.CheckpointManager(given, tmp_path, 1)


def test_the_current_folder_without_a_name(
    checkpoint: mr.train.Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As `os.path.dirname("ckpt")` gives it."""
    monkeypatch.chdir(tmp_path)
    manager = mr.train.CheckpointManager(checkpoint, "", 1)
    assert [manager.save() for _ in range(2)] == ["ckpt-1", "ckpt-2"]
    assert manager.checkpoints == ["ckpt-2"]
    assert manager.restore_or_initialize() == mr.train.latest_checkpoint("") == "ckpt-2"
    assert caplog.messages == []


@pytest.mark.parametrize("folder", [b"run", 5, None], ids=repr)
def test_what_is_no_folder(folder: Any, checkpoint: mr.train.Checkpoint) -> None:
    with pytest.raises(TypeError, match=r"A folder of checkpoints needs a path\. Received: "):
        mr.train.CheckpointManager(checkpoint, folder, 1)


@pytest.mark.parametrize("number", [-3, 2.5, "7", True, np.float32(7)], ids=repr)
def test_numbers_that_are_none(
    number: Any, checkpoint: mr.train.Checkpoint, tmp_path: Path
) -> None:
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 1)
    for given in (number, mr.Variable(1.5), mr.Variable(-1)):
        with pytest.raises(ValueError, match="an integer of 0 or more, or None"):
            manager.save(given)
    assert list(tmp_path.iterdir()) == []
    assert int(checkpoint.save_counter) == 0


def test_two_managers_of_one_folder(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one wants to delete, the other has deleted by then."""
    first, second = (mr.train.CheckpointManager(checkpoint, tmp_path, 1) for _ in range(2))
    first.save()
    unlink = os.unlink

    def late(path: str) -> None:
        unlink(path)
        unlink(path)  # This one is late.

    monkeypatch.setattr(os, "unlink", late)
    assert second.save() == f"{tmp_path}/ckpt-2"
    assert os.listdir(tmp_path) == ["ckpt-2"]


def test_a_file_that_goes_while_the_folder_is_read(
    checkpoint: mr.train.Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, None)
    paths = [manager.save() for _ in range(2)]
    isfile = os.path.isfile

    def gone(path: str) -> bool:
        if path == paths[1] and isfile(path):
            os.unlink(path)
            return True
        return isfile(path)

    monkeypatch.setattr(os.path, "isfile", gone)
    assert manager.latest_checkpoint == paths[0]
    assert not any("Skipped" in each for each in caplog.messages)


def test_a_file_that_cannot_be_deleted(
    checkpoint: mr.train.Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The checkpoint is there, so it is no error."""
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 1)
    manager.save()

    def refuse(path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(os, "unlink", refuse)
    assert manager.save() == f"{tmp_path}/ckpt-2" == manager.latest_checkpoint
    assert "ckpt-2' was written, but old files could not be removed: [Errno" in caplog.text


@pytest.mark.behaviour("leftovers")
def test_what_a_killed_program_left(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    own = ["ckpt-1.01234567.mirrored.tmp", "ckpt-77.89abcdef.mirrored.tmp"]
    others = [
        "best-1.01234567.mirrored.tmp",
        "ckpt.01234567.mirrored.tmp",
        "ckpt-1.tmp",
        "ckpt-x.01234567.mirrored.tmp",
    ]
    for name in (*own, *others):
        (tmp_path / name).write_bytes(b"part")
    mr.train.CheckpointManager(checkpoint, tmp_path, None).save()
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "ckpt-1"])
