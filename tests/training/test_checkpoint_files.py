"""The latest checkpoint of a folder is the one that was saved last, told by the files alone."""

import shutil
import threading
from pathlib import Path

import pytest

import mirrored as mr
from mirrored.training import checkpoint as checkpoint_module
from mirrored.training.checkpoint_files import Saved, latest_checkpoint, latest_in, saved_in


@pytest.fixture
def checkpoint() -> mr.train.Checkpoint:
    return mr.train.Checkpoint(epoch=mr.Variable(0))


def test_none(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert latest_checkpoint(tmp_path / "missing") is None
    assert latest_checkpoint(tmp_path) is None
    checkpoint.write(tmp_path / "written-1")
    (tmp_path / "folder-2").mkdir()
    assert latest_checkpoint(tmp_path) is None
    assert caplog.messages == []


def test_the_order_is_that_of_saving(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    """Neither that of names nor that of times, which a copy of the folder has lost."""
    saved = [checkpoint.save(tmp_path / "run" / name) for name in ("z", "a", *["m"] * 9)]
    assert saved[-1].endswith("m-11")
    assert [each.path for each in saved_in(tmp_path / "run")] == saved
    shutil.copytree(tmp_path / "run", tmp_path / "copy", copy_function=shutil.copyfile)
    assert latest_checkpoint(tmp_path / "copy") == str(tmp_path / "copy" / "m-11")


def test_two_threads_save_two_files(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins while the first has looked at the folder, and not written yet."""
    saved: list[str] = []
    other = threading.Thread(target=lambda: saved.append(checkpoint.save(tmp_path / "ckpt")))

    def looked(directory: str) -> list[Saved]:
        monkeypatch.undo()
        found = saved_in(directory)
        other.start()
        other.join(0.1)  # Where nothing held it back it would be done.
        return found

    monkeypatch.setattr(checkpoint_module, "saved_in", looked)
    saved.append(checkpoint.save(tmp_path / "ckpt"))
    other.join()
    assert [each.path for each in saved_in(tmp_path)] == sorted(saved)
    assert [Path(each).name for each in sorted(saved)] == ["ckpt-1", "ckpt-2"]
    assert int(checkpoint.save_counter) == 2


def test_a_new_run_in_the_folder_of_an_old_one(tmp_path: Path) -> None:
    for times in (3, 1):
        checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        for _ in range(times):
            path = checkpoint.save(tmp_path / "ckpt")
    assert latest_checkpoint(tmp_path) == path == str(tmp_path / "ckpt-1")
    assert [each.number for each in saved_in(tmp_path)] == [2, 3, 1]


def test_spoilt_files_are_left_out(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = checkpoint.save(tmp_path / "ckpt")
    Path(checkpoint.save(tmp_path / "ckpt")).write_bytes(b"spoilt")
    assert checkpoint.save(tmp_path / "other") == str(tmp_path / "other-3")
    assert caplog.messages == []
    assert latest_in(tmp_path, "ckpt") == path
    (message,) = caplog.messages
    assert "is left out. The checkpoint" in message
    assert "ckpt-2' is truncated" in message
