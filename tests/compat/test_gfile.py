"""`tf.gfile`: what programs do before and after training."""

from pathlib import Path

import pytest

import mirrored.compat.v1 as tf
from mirrored import errors


def test_files_and_folders(tmp_path: Path) -> None:
    folder, first, second = (str(tmp_path / each) for each in ("a/b", "a/b/one", "a/b/two"))
    for _ in range(2):
        tf.gfile.MakeDirs(folder)
    with tf.gfile.GFile(first, "w") as file:
        file.write("text")
    tf.gfile.Copy(first, second)
    assert Path(second).read_text() == "text"
    assert sorted(tf.gfile.ListDirectory(folder)) == ["one", "two"]
    assert tf.gfile.Glob([f"{folder}/o*", f"{folder}/t*"]) == [first, second]
    for change in (tf.gfile.Copy, tf.gfile.Rename):
        with pytest.raises(errors.InvalidArgumentError, match="is there already"):
            change(first, second)
    tf.gfile.Rename(first, second, overwrite=True)
    assert [tf.gfile.Exists(each) for each in (first, second)] == [False, True]
    tf.gfile.Remove(second)
    tf.gfile.DeleteRecursively(str(tmp_path / "a"))
    assert not tf.gfile.IsDirectory(folder)
