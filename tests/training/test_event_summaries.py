"""Summaries: what is in the files, as the messages of TensorBoard's format have it, and when."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import written

import mirrored as mr
from mirrored._naming import name_scope

S = mr.summary


def test_what_is_in_the_file(tmp_path: Path) -> None:
    writer = S.create_file_writer(tmp_path / "logs")
    step = mr.Variable(3, dtype=mr.int64)
    assert not S.scalar("nowhere", 1.0)
    with writer.as_default():
        assert S.scalar("loss", mr.constant(0.5), step=1)
        assert S.scalar("integer", 7, step=mr.constant(300), description="It says so.")
        with name_scope("scope"), S.record_if(lambda: mr.constant(True)):
            S.experimental.set_step(step)
            S.scalar("inside", np.float64(2.0))
        step.assign_add(1)
        S.histogram("h", [1.0, 2.0, 2.0, 5.0], buckets=2)
        S.histogram("one", [3, 3], buckets=2)
        S.histogram("none", [], buckets=1)
        S.text("t", "hello")
        S.text("table", [["a", b"b"], ["c", "d"]])
        with S.record_if(False):
            assert not S.scalar("not", 1.0)
            assert not S.should_record_summaries()
        with S.create_noop_writer().as_default():
            assert S.should_record_summaries()
    S.experimental.set_step(None)
    with writer.as_default(step=9):
        S.scalar("last", True)
    assert S.experimental.get_step() is None
    assert written(tmp_path / "logs") == [
        ("loss", 1, "scalars", 0.5),
        ("integer", 300, "scalars", 7.0),
        ("scope/inside", 3, "scalars", 2.0),
        ("h", 4, "histograms", [[1.0, 3.0, 3.0], [3.0, 5.0, 1.0]]),
        ("one", 4, "histograms", [[3.0, 3.0, 0.0], [3.0, 3.0, 2.0]]),
        ("none", 4, "histograms", [[0.0, 0.0, 0.0]]),
        ("t", 4, "text", ["hello"]),
        ("table", 4, "text", ["a", "b", "c", "d"]),
        ("last", 9, "scalars", 1.0),
    ]
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
        pass


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for a file is told what to install, before its folder is made."""
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "mirrored.training.event_file", raising=False)
    with pytest.raises(ImportError, match=r"tensorboardX.* install mirrored's extra `tensorboard`"):
        S.create_file_writer(tmp_path / "logs")
    assert not (tmp_path / "logs").exists()
    with S.create_noop_writer().as_default():
        assert not S.scalar("x", 1.0, step=1)


def test_wrong_uses(tmp_path: Path) -> None:
    with S.create_file_writer(tmp_path).as_default():
        for call, error, text in [
            (lambda: S.scalar("x", 1.0), ValueError, "No step set"),
            (lambda: S.scalar("x", [1.0, 2.0], step=1), ValueError, "Expected scalar shape"),
            (lambda: S.scalar("x", 1.0, step=1.5), TypeError, "A step must be an integer"),
            (lambda: S.text("x", 3, step=1), TypeError, "Text must be a string"),
        ]:
            with pytest.raises(error, match=text):
                call()
    assert written(tmp_path) == []


def test_a_recorded_step_writes_in_each_call_on_the_first_replica(
    tmp_path: Path, simulate: Callable[..., Any]
) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    step = mr.Variable(0, dtype=mr.int64)

    @mr.function
    def train(x: mr.Tensor) -> None:
        strategy.run(lambda x: S.scalar("in", x * 2.0, step=1), (x,))
        step.assign_add(1)
        S.scalar("out", x, step=step)

    with S.create_file_writer(tmp_path).as_default():
        for value in (1.0, 3.0):
            train(mr.constant(value))
    assert [each[:2] + each[3:] for each in written(tmp_path)] == [
        ("in", 1, 2.0),
        ("out", 1, 1.0),
        ("in", 1, 6.0),
        ("out", 2, 3.0),
    ]
