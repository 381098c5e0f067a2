"""In which order nodes run: replicas side by side, joint work between them, writes at the end."""

from collections.abc import Callable
from typing import Any

import numpy as np

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.concurrency import Threads
from mirrored.program.dataflow import SHARED
from mirrored.program.schedule import FusedGroup, Guard, make_schedule

X = np.ones((2, 3), np.float32)
V = np.ones((500,), np.float32)


def described(graph: Any) -> list[Any]:
    """Return the stages as names of ops: by replica, in a list, in a tuple with a length."""
    found: list[Any] = []
    for stage in make_schedule(graph, Threads()).stages:
        names = {launch.replica: [node.op.name for node in launch.nodes()] for launch in stage}
        (phase,) = stage[0].phases
        if isinstance(phase, Guard):
            found.append("guard")
        elif isinstance(phase, FusedGroup):
            found.append((phase.size, *names.values()))
        else:
            found.append(names.get(SHARED, names))
    return found


def test_what_nobody_needs_does_not_run(record: Any) -> None:
    def function(x: ops.Tensor) -> list[ops.Tensor]:
        ops.exp(x @ ops.transpose(x))
        return [ops.tanh(x)]

    assert described(record(function, [X]).graph) == [["Tanh"]]


def test_replicas_run_side_by_side_between_joint_work(
    record: Any, as_replica: Callable[[int], Any]
) -> None:
    def function(x: ops.Tensor, y: ops.Tensor) -> list[ops.Tensor]:
        parts = []
        for replica, each in enumerate((x, y)):
            with as_replica(replica):
                parts.append(ops.square(ops.tanh(each)))
        total = ops.add_n(parts)
        for replica, part in enumerate(parts):
            with as_replica(replica):
                parts[replica] = part / total
        return parts

    assert described(record(function, [X, X], replicas=[0, 1]).graph) == [
        {0: ["Tanh", "Square"], 1: ["Tanh", "Square"]},
        ["AddN"],
        {0: ["RealDiv"], 1: ["RealDiv"]},
    ]


def test_what_is_shared_waits_until_replicas_have_met(
    record: Any, as_replica: Callable[[int], Any]
) -> None:
    def function(x: ops.Tensor, y: ops.Tensor, v: ops.Tensor) -> list[ops.Tensor]:
        decayed = ops.tanh(v)
        parts = []
        for replica, each in enumerate((x, y)):
            with as_replica(replica):
                parts.append(ops.square(each))
        return [decayed + ops.reduce_sum(ops.add_n(parts))]

    # Behind the replicas, its results take no memory while they run.
    assert described(record(function, [X, X, V], replicas=[0, 1, SHARED]).graph) == [
        {0: ["Square"], 1: ["Square"]},
        (500, ["Tanh"]),
        ["AddN", "Sum"],
        (500, ["AddV2"]),
    ]


def test_long_vectors_are_computed_together(record: Any) -> None:
    def function(v: ops.Tensor, x: ops.Tensor) -> list[ops.Tensor]:
        scale = ops.reduce_sum(x)
        a = ops.tanh(v) * scale
        norm = ops.reduce_sum(a)
        return [a + 1.0, ops.exp(a) / norm]

    assert described(record(function, [V, X]).graph) == [
        ["Sum"],
        (500, ["Tanh", "Mul", "AddV2", "Exp"]),
        ["Sum"],
        (500, ["RealDiv"]),
    ]


def test_nothing_is_written_before_the_guard(record: Any) -> None:
    v = mr.Variable(V)

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        total = ops.reduce_sum(x)
        active_recorder().require_finite((total,))  # type: ignore[union-attr]
        v.assign(v * total)
        return [total]

    assert described(record(function, [X]).graph) == [["Sum"], "guard", (500, ["Mul"])]


def test_what_a_guard_looks_at_comes_before_it(record: Any) -> None:
    """Even where a variable was assigned first, as a layer does that keeps a mean."""
    v = mr.Variable(V)

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        v.assign(v + 1.0)
        total = ops.reduce_sum(ops.tanh(x))
        active_recorder().require_finite((total,))  # type: ignore[union-attr]
        return [total]

    recorded = record(function, [X])
    assert described(recorded.graph) == [["Tanh", "Sum"], "guard", (500, ["AddV2"])]
    recorded(X)
    np.testing.assert_array_equal(v.numpy(), V + 1)


def test_the_order_is_that_of_recording(record: Any) -> None:
    def function(x: ops.Tensor) -> list[ops.Tensor]:
        results = [ops.tanh(x), ops.exp(x), ops.square(x), -x]
        return results[::-1]

    assert described(record(function, [X]).graph) == [["Tanh", "Exp", "Square", "Neg"]]
