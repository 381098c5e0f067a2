"""`tf.summary`: what sessions return for summaries, and the files that they go to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored import errors

pb = pytest.importorskip("tensorboardX.proto.summary_pb2")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def values_of(data: bytes) -> list[Any]:
    return list(pb.Summary.FromString(data).value)


def test_a_session_returns_what_tensorflow_does() -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.name_scope("a"):
        tf.summary.scalar("mean x", tf.reduce_mean(x))
        tf.summary.histogram("h", x)
    tf.summary.scalar("loss", tf.constant(2), family="fam")
    tf.summary.text("note", "a *new* run")
    merged = tf.summary.merge_all()
    assert (merged.name, merged.op.type) == ("Merge/MergeSummary:0", "MergeSummary")
    assert "dtype=string" in repr(merged)
    given = np.array([0.0, 1.0, -2.5, 3.0, 3.0], np.float32)
    with tf.Session() as session:
        mean, histogram, loss, note = values_of(session.run(merged, {x: given}))
        assert merged.eval({x: given}) == session.run([merged, x], {x: given})[0]
    assert (mean.tag, mean.simple_value) == ("a/mean_x", np.float32(given.mean()))
    assert (loss.tag, loss.simple_value) == ("fam/fam/loss", 2.0)
    assert (note.tag, list(note.tensor.string_val)) == ("note", [b"a *new* run"])
    found = histogram.histo
    assert (found.min, found.max, found.num, found.sum) == (-2.5, 3.0, 5.0, 4.5)
    assert found.sum_squares == 25.25
    pairs = [each for each in zip(found.bucket_limit, found.bucket, strict=True) if each[1]]
    # As TensorFlow 2.21 counts them.
    assert [count for _, count in pairs] == [1.0, 1.0, 1.0, 2.0]
    np.testing.assert_allclose([limit for limit, _ in pairs], LIMITS, rtol=1e-12)


LIMITS = [-2.3791009056258718, 1e-12, 1.0089710279437536, 3.1665833053880363]


def test_files_have_summaries_and_the_graph(graph: tf.Graph, tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.graph_pb2 import GraphDef

    v = tf.Variable(1.0, name="v")
    loss = tf.summary.scalar("loss", v * 2.0)
    writer = tf.summary.FileWriter(str(tmp_path), graph)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(["loss/tags:0", v]) == [b"loss", 1.0]
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        told = tf.RunMetadata()
        writer.add_summary(session.run(loss, options=options, run_metadata=told), global_step=3)
    writer.add_run_metadata(told, "step 3", 3)
    with pytest.raises(ValueError, match="The provided tag was already used"):
        writer.add_run_metadata(told, "step 3", 4)
    writer.close()
    (path,) = tmp_path.iterdir()
    events = [Event.FromString(each) for each in records(path.read_bytes())]
    nodes = {each.name: each for each in GraphDef.FromString(events[1].graph_def).node}
    assert (nodes["loss"].op, list(nodes["loss"].input)) == ("ScalarSummary", ["loss/tags", "mul"])
    assert (nodes["mul"].op, list(nodes["mul"].input)) == ("Mul", ["v/read", "mul/y"])
    assert (events[3].step, events[3].tagged_run_metadata.tag) == (3, "step 3")
    assert (events[2].step, events[2].summary.value[0].simple_value) == (3, 2.0)
    with pytest.raises(RuntimeError, match="already closed"):
        writer.add_summary(b"", 4)


def records(data: bytes) -> Iterator[bytes]:
    while data:
        size = int.from_bytes(data[:8], "little")
        yield data[12 : 12 + size]
        data = data[16 + size :]


def test_what_is_wrong(graph: tf.Graph) -> None:
    assert tf.summary.merge_all() is None
    x = tf.placeholder(tf.float32, [None])
    of_many, spread = tf.summary.scalar("s", x), tf.summary.histogram("h", x)
    with tf.Session() as session:
        with pytest.raises(errors.InvalidArgumentError, match="not the same shape"):
            session.run(of_many, {x: [1.0, 2.0]})
        with pytest.raises(errors.InvalidArgumentError, match="Nan in summary histogram for: h"):
            session.run(spread, {x: [1.0, float("nan")]})
    with pytest.raises(TypeError, match="Only summaries can be merged"):
        tf.summary.merge([x])
