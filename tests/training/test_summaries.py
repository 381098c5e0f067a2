"""Summaries: what is in the files, as the messages of TensorBoard's format have it, and when."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored._name_scope import name_scope
from mirrored.training.event_file import checksum

S = mr.summary


def fields(message: bytes) -> dict[int, list[Any]]:
    """Return the fields of a Protocol Buffers message by their numbers."""

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value: Any = varint()
        else:
            size = 8 if key & 7 == 1 else varint()
            value = message[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder: Path) -> list[dict[int, list[Any]]]:
    """Return the events of a folder's only file, whose checksums are right."""
    (path,) = folder.iterdir()
    data, found = path.read_bytes(), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        assert checksum(data[:8]) == data[8:12]
        assert checksum(data[12 : 12 + size]) == data[12 + size : 16 + size]
        found.append(fields(data[12 : 12 + size]))
        data = data[16 + size :]
    return found


def written(folder: Path) -> list[tuple[str, int, str, Any]]:
    """Return the name, step, plugin and value of each summary."""
    first, *rest = events(folder)
    assert first[3] == [b"brain.Event:2"]
    found = []
    for event in rest:
        value = fields(fields(event[5][0])[1][0])
        plugin = fields(fields(value[9][0])[1][0])[1][0].decode()
        tensor = fields(value[8][0])
        sizes = [fields(each)[1][0] for each in fields(tensor.get(2, [b""])[0]).get(2, [])]
        if tensor[1] == [7]:
            shown: Any = [each.decode() for each in tensor[8]]
        else:
            dtype = {1: np.float32, 2: np.float64}[tensor[1][0]]
            shown = np.frombuffer(tensor[4][0], dtype).reshape(sizes).tolist()
        found.append((value[1][0].decode(), event[2][0], plugin, shown))
    return found


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


def test_wrong_uses(tmp_path: Path) -> None:
    with S.create_file_writer(tmp_path).as_default():
        for call, error, text in [
            (lambda: S.scalar("x", 1.0), ValueError, "No step set"),
            (lambda: S.scalar("x", [1.0, 2.0], step=1), ValueError, "Expected scalar shape"),
            (lambda: S.scalar("x", 1.0, step=1.5), TypeError, "A step is an integer"),
            (lambda: S.text("x", 3, step=1), TypeError, "Text is a string"),
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
