"""`tf.train.Saver`: values go to a file and come back into any session."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored import errors

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_values_come_back(tmp_path: Path) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    n = tf.Variable(3, name="n")
    grow = tf.group(v.assign_add([1.0, 1.0]), n.assign_add(1))
    saver = tf.train.Saver(max_to_keep=2)
    first, second = tf.Session(), tf.Session()
    first.run(tf.global_variables_initializer())
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    paths = []
    for _ in range(3):
        first.run(grow)
        paths.append(saver.save(first, str(tmp_path / "model.ckpt"), global_step=n))
    assert [Path(each).name for each in paths] == [f"model.ckpt-{i}" for i in (4, 5, 6)]
    assert saver.last_checkpoints == paths[1:]
    assert not Path(paths[0]).exists()
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == paths[2]
    saver.restore(second, latest)
    values, count = second.run([v, n])
    assert (values.tolist(), count) == ([4.0, 5.0], 6)
    saver.restore(first, paths[1])
    assert first.run(v).tolist() == [3.0, 4.0]
    v.load([7, 8], second)
    assert second.run(v).tolist() == [7.0, 8.0]


def test_files_tell_what_they_have(tmp_path: Path) -> None:
    tf.Variable([1.0, 2.0], name="v")
    n = tf.Variable(3, name="n")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"), n)
        assert tf.train.global_step(session, n) == 3
    assert [tf.train.checkpoint_exists(each) for each in (path, f"{path}-1")] == [True, False]
    for where in (path, str(tmp_path)):
        assert tf.train.list_variables(where) == [("n", []), ("v", [2])]
        assert tf.train.load_variable(where, "v").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Key w not found in checkpoint"):
        tf.train.load_variable(path, "w")
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.list_variables(f"{path}-1")


def test_one_file_stays_after_so_many_hours(tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        for hours, count in ((0.0, 3), (1.0, 1)):
            saver = tf.train.Saver(
                max_to_keep=1, keep_checkpoint_every_n_hours=hours, pad_step_number=True
            )
            for step in range(3):
                path = saver.save(session, str(tmp_path / f"{hours}"), step)
            assert path.endswith("-00000002")
            assert len(list(tmp_path.glob(f"{hours}-*"))) == count


def test_names_of_the_file_may_be_others(tmp_path: Path) -> None:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "a"))
        tf.train.Saver({"w": v}).restore(session, path)
        assert session.run([v, w]) == [2.0, 2.0]


SAVED: list[tuple[str, type[Exception], str]] = [
    ("3", TypeError, "Variables to save should be passed in a dict or a list. Got 3"),
    ("[x]", TypeError, "Variable to save is not a Variable: Tensor"),
    ("{'a': x}", TypeError, "Variable to save is not a Variable: Tensor"),
    ("[v, v]", ValueError, "At least two variables have the same name: v"),
]


def test_what_is_wrong_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    path = str(tmp_path / "model")
    v = tf.Variable([1.0, 2.0], name="v")
    for given, kind, text in SAVED:
        with pytest.raises(kind, match=text):
            tf.train.Saver(eval(given, {"v": v, "x": tf.constant(1.0)}))
    with tf.Session() as session:
        with pytest.raises(ValueError, match="doesn't exist, can't save"):
            tf.train.Saver().save(session, str(tmp_path / "no" / "model"))
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v"):
            tf.train.Saver().save(session, path)
        session.run(v.initializer)
        tf.train.Saver().save(session, path)
        session.run(v.assign([5.0, 6.0]))
        w = tf.Variable(np.ones(3), name="w")
        wrong: list[tuple[Any, str, str]] = [
            ([v, w], path, "Key w not found in checkpoint"),
            ({"v": w}, path, "Assign requires shapes and dtypes of both tensors to match."),
            ([v], f"{path}-1", "The passed save_path is not a valid checkpoint: "),
        ]
        for variables, name, text in wrong:
            with pytest.raises(ValueError, match=re.escape(text)):
                tf.train.Saver(variables).restore(session, name)
        assert session.run(v).tolist() == [5.0, 6.0]
