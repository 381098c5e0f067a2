"""From phases to launches: on which arrays, and behind which flag."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.streamed import StreamedProgram

X = np.arange(12, dtype=np.float32).reshape(4, 3)
FLAG = 0  # The place of the flag among the arguments of a chain's kernel.


def calls_of(program: StreamedProgram) -> list[Any]:
    stages = [stage for part in program._steps.parts for stage in part]
    return [call for launches in stages for launch in launches for call in launch.calls]


def launches(program: StreamedProgram) -> list[tuple[str, Any]]:
    """Return what is launched: a kernel's name with its arguments, or 'copy', 'clear', 'matmul'."""
    found = []
    for call in calls_of(program):
        name = call.function.__name__
        found.append((call.args[1], call.args[4]) if name == "launch" else (name, call.args))
    return found


def result(program: StreamedProgram, *arrays: Any) -> list[np.ndarray]:
    program.run(1, list(arrays))
    values = zip(program.graph.outputs, program.outputs, strict=True)
    return [value.device.backend.to_host(array) for value, array in values]


def test_a_chain_reads_each_value_once(cards: Any) -> None:
    cards.make(1)
    row = np.array([1, 2, 3], np.float32)
    graph = cards.record(lambda x, b: [(x + b) * x + b, x - b], X, row)
    program = StreamedProgram(graph)
    (name, args), told = launches(program)
    assert (name, told[0]) == ("fused", "tell")
    assert sum(hasattr(getattr(each, "data", None), "ptr") for each in args) == 4
    assert args[FLAG] is None
    first, second = result(program, X, row)
    np.testing.assert_array_equal(first, (X + row) * X + row)
    np.testing.assert_array_equal(second, X - row)


def test_two_parts_of_one_value_are_two_inputs(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(lambda x: [x[0] * 2.0 - x[1], ops.reshape(x, (12,))[3:6] + x[2]], X)
    found = result(StreamedProgram(graph), X)
    np.testing.assert_array_equal(found[0], X[0] * 2 - X[1])
    np.testing.assert_array_equal(found[1], X[1] + X[2])


def test_what_is_joined_where_it_is_computed_is_not_copied(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(lambda x: [ops.concat([ops.softmax(x), x, ops.tanh(x)], axis=0)], X)
    program = StreamedProgram(graph)
    names = [name for name, _ in launches(program)]
    assert names.count("copy") == 1
    (found,) = result(program, X)
    e = np.exp(X - X.max(axis=1, keepdims=True))
    expected = np.concatenate([e / e.sum(axis=1, keepdims=True), X, np.tanh(X)])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_loss_and_its_gradient_are_one_call(cards: Any) -> None:
    cards.make(1)
    labels = np.array([0, 1, 2, 1], np.int32)

    def function(x: Any, y: Any) -> list[Any]:
        with mr.GradientTape() as tape:
            tape.watch(x)
            loss = ops.reduce_sum(ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x))
        return [loss, tape.gradient(loss, x)]

    program = StreamedProgram(cards.record(function, X, labels))
    nodes = [call.node.op.name for call in calls_of(program)]
    assert "SparseSoftmaxCrossEntropyGrad" in nodes
    assert "SparseSoftmaxCrossEntropyWithLogits" not in nodes
    loss, gradient = result(program, X, labels)
    softmax = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss, -np.log(softmax[range(4), labels]).sum(), rtol=1e-5)
    np.testing.assert_allclose(gradient, softmax - np.eye(3)[labels], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("guarded", [False, True])
def test_only_writes_of_variables_look_at_the_flag(guarded: bool, cards: Any) -> None:
    cards.make(1)
    with mr.device("GPU:0"):
        chained, computed = mr.Variable(X), mr.Variable(X)

    def function(x: Any) -> list[Any]:
        y = ops.tanh(x)
        recorder: Any = active_recorder()
        if guarded:
            recorder.require_finite((ops.reduce_sum(x),))
        chained.assign_sub(y * 0.5)
        computed.assign(ops.softmax(x))
        return [y]

    program = StreamedProgram(cards.record(function, X))
    places = {each.pinned()[0].array.data.ptr for each in (chained, computed)}
    for name, args in launches(program):
        arrays = [each for each in args if hasattr(each, "data") and hasattr(each.data, "ptr")]
        if name == "fused" and guarded:
            writes = any(each.data.ptr in places for each in arrays[1:])
            assert (args[FLAG] is not None) == writes
        elif name == "fused":
            assert args[FLAG] is None
        else:
            assert not guarded or not any(each.data.ptr in places for each in arrays)


def test_draws_are_read_from_memory(cards: Any) -> None:
    """A captured draw is another one in each step: its number is fed."""
    cards.make(1)

    def function() -> list[Any]:
        return [mr.random.normal((5,))]

    mr.random.set_seed(4)
    program = StreamedProgram(cards.record(function))
    found = [result(program)[0].tolist() for _ in range(4)]
    assert len(set(map(tuple, found))) == 4


def test_constants_are_there_before_the_first_step(cards: Any) -> None:
    cards.make(1)
    table = np.arange(3, dtype=np.float32)
    graph = cards.record(lambda x: [x * ops.constant(table) + ops.constant([[2.0]])], X)
    program = StreamedProgram(graph)
    for factor in (1, 2):
        (found,) = result(program, X * np.float32(factor))
        np.testing.assert_array_equal(found, X * factor * table + 2)
