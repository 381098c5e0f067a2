"""What recording notes: values and nodes, once each, views as parts, variables by their memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.hooks import active_recorder, recorded_by
from mirrored.program import GraphRecorder, Program

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def names(recorded: Any) -> list[str]:
    return [node.op.name for node in recorded.graph.nodes]


def test_nothing_is_computed_and_no_memory_is_taken(record: Any) -> None:
    recorder, pool = GraphRecorder(), devices.get_device("CPU:0").pool
    before = pool.current
    x = recorder.input(ops.TensorSpec((1000, 1000), ops.float32), devices.get_device("CPU:0"), 0)
    with recorded_by(recorder):
        y = ops.tanh(x @ x) + 1.0
    assert (y.shape, y.dtype, y.device) == ((1000, 1000), ops.float32, mr.constant(0.0).device)
    assert repr(y) == str(y) == "<mr.Tensor: shape=(1000, 1000), dtype=float32, recorded>"
    assert pool.current - before < 100  # The number.
    assert active_recorder() is None


def test_the_same_is_computed_once(record: Any) -> None:
    def function(x: ops.Tensor) -> list[ops.Tensor]:
        return [ops.tanh(x) + 2.0, ops.tanh(x) + 2.0, ops.tanh(x) + 3.0]

    assert names(record(function, [X])) == ["Tanh", "AddV2", "AddV2"]


def test_zeros_of_either_sign_are_not_the_same(record: Any) -> None:
    def function(x: ops.Tensor) -> list[ops.Tensor]:
        return [x * 0.0, x * -0.0, 1.0 / (x * 0.0), 1.0 / (x * -0.0)]

    plus, minus, up, down = record(function, [X])(X + 1)
    assert not np.signbit(plus).any()
    assert np.signbit(minus).all()
    assert (up == np.inf).all()
    assert (down == -np.inf).all()


def test_numbers_of_several_shapes_are_not_the_same(record: Any) -> None:
    def function(x: ops.Tensor) -> list[ops.Tensor]:
        return [ops.where(x[0, 0] < 1.0, ops.ones(n), ops.zeros(n)) for n in (7, 3)]

    assert [result.tolist() for result in record(function, [X])(X)] == [[1.0] * 7, [1.0] * 3]


def test_two_draws_are_two(record: Any) -> None:
    source = ops.SeedGenerator(1)
    recorded = record(lambda x: [source.uniform((3,)), source.uniform((3,))], [X])
    a, b = recorded(X)
    assert not np.array_equal(a, b)
    again = ops.SeedGenerator(1)
    np.testing.assert_array_equal([a, b], [again.uniform((3,)).numpy() for _ in range(2)])


VIEWS: dict[str, Callable[[ops.Tensor], ops.Tensor]] = {
    "identity": ops.identity,
    "reshape": lambda x: ops.reshape(x, (3, 2)),
    "rows": lambda x: x[1:],
    "no rows": lambda x: x[2:],
    "a row": lambda x: x[-1],
    "a sum of one": lambda x: ops.add_n([x]),
    "its rows again": lambda x: ops.concat([x[:1], x[1:]], axis=0),
    "rows of rows": lambda x: x[1:][0],
}
NO_VIEWS: dict[str, Callable[[ops.Tensor], ops.Tensor]] = {
    "columns": lambda x: x[:, 1:],
    "every second": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "rows in another order": lambda x: ops.concat([x[1:], x[:1]], axis=0),
    "a row twice": lambda x: ops.concat([x[:1], x[:1]], axis=0),
    "columns again": lambda x: ops.concat([x[:, :1], x[:, 1:]], axis=1),
    "transpose": ops.transpose,
}


@cases("name", [*VIEWS, *NO_VIEWS])
def test_what_is_a_part_of_memory_takes_none(name: str, record: Any, bits: Any) -> None:
    function = {**VIEWS, **NO_VIEWS}[name]
    recorded = record(lambda x: [function(x)], [X])
    assert (names(recorded) == []) == (name in VIEWS)
    assert bits(recorded(X)) == bits([function(ops.constant(X)).numpy()])


def test_what_does_not_depend_on_the_inputs_is_computed_while_recording(record: Any) -> None:
    recorded = record(lambda x: [x + ops.exp(ops.zeros((2, 3))), ops.zeros_like(x) - 1.0], [X])
    assert names(recorded) == ["AddV2"]
    np.testing.assert_array_equal(recorded(X)[0], X + 1)
    np.testing.assert_array_equal(recorded(X)[1], np.full_like(X, -1))


def test_ops_are_checked_as_they_are_eagerly(record: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        record(lambda x: [x + ops.ones((4,))], [X])
    with pytest.raises(InvalidArgumentError, match="cannot compute AddV2"):
        record(lambda x: [x + ops.ones((3,), "float64")], [X])


def test_values_are_checked_in_every_run(record: Any) -> None:
    logits = ops.constant(np.zeros((2, 3), np.float32))
    labels = np.array([0, 2])
    op = ops.OPS["SparseSoftmaxCrossEntropyWithLogits"]
    recorded = record(lambda y: [op(logits * ops.cast(y[0] * 0 + 1, "float32"), y)], [labels])
    recorded(labels)
    with pytest.raises(InvalidArgumentError, match="Received a label value of 3"):
        recorded(np.array([0, 3]))
    recorded(labels)


# ------------------------------------------------------------------------------ variables


def test_variables_are_read_in_every_run(record: Any) -> None:
    v = mr.Variable(np.float32(2.0))
    recorded = record(lambda x: [x * v], [X])
    np.testing.assert_array_equal(recorded(X)[0], 2 * X)
    v.assign(3.0)
    np.testing.assert_array_equal(recorded(X)[0], 3 * X)


def test_a_read_after_a_write_is_of_what_was_written(record: Any) -> None:
    v = mr.Variable(np.ones((2, 3), np.float32))

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        before = v * 1.0
        v.assign_add(x)
        between = v * 1.0
        v.assign(v * 2.0)
        return [before, between, v * 1.0]

    recorded = record(function, [X])
    before, between, after = recorded(X)
    np.testing.assert_array_equal(before, np.ones_like(X))
    np.testing.assert_array_equal(between, 1 + X)
    np.testing.assert_array_equal(after, 2 + 2 * X)
    np.testing.assert_array_equal(v.numpy(), after)
    np.testing.assert_array_equal(recorded(X)[0], 2 + 2 * X)


def test_variables_exchange_their_values(record: Any) -> None:
    a, b, c = (mr.Variable(np.full((3,), i, np.float32)) for i in range(3))

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        values = [each.read_value() for each in (a, b, c)]
        for each, value in zip((b, c, a), values, strict=True):
            each.assign(value)
        return [x + 0.0]

    recorded = record(function, [X])
    for step in range(1, 5):
        recorded(X)
        assert [float(each.numpy()[0]) for each in (a, b, c)] == [(i - step) % 3 for i in range(3)]


def test_a_variable_gets_an_input_or_a_constant(record: Any) -> None:
    v, w = mr.Variable(np.zeros((2, 3), np.float32)), mr.Variable(np.zeros((2,), np.float32))

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        v.assign(x)
        w.assign(ops.constant([3.0, 4.0]))
        return [x + 0.0]

    recorded = record(function, [X])
    for factor in (1, 2):
        recorded(factor * X)
        np.testing.assert_array_equal(v.numpy(), factor * X)
        np.testing.assert_array_equal(w.numpy(), [3, 4])
        w.assign([0.0, 0.0])


def test_what_a_variable_was_is_a_result(record: Any) -> None:
    """It has no memory of its own, and what it is read from is written."""
    v = mr.Variable(np.array([1.0, 2.0], np.float32))

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        old = v.read_value()
        v.assign_add([1.0, 1.0])
        return [old, old[1:], ops.reshape(v, (2, 1)), x + 0.0]

    recorded = record(function, [X])
    for step in range(3):
        old, part, new, _ = recorded(X)
        np.testing.assert_array_equal(old, [1 + step, 2 + step])
        np.testing.assert_array_equal(part, [2 + step])
        np.testing.assert_array_equal(new, [[2 + step], [3 + step]])


def test_a_graph_knows_when_its_variables_have_moved(record: Any) -> None:
    from mirrored.variables.flat import pack

    v, w = (mr.Variable(np.ones((3,), np.float32)) for _ in range(2))
    graph = record(lambda x: [x[0] * v * w], [X]).graph
    assert graph.is_current()
    v.assign([2.0, 2.0, 2.0])
    assert graph.is_current()
    pack([v, w])
    assert not graph.is_current()


def test_a_variable_made_of_a_recorded_tensor_is_refused(record: Any) -> None:
    with pytest.raises(OperatorNotAllowedInGraphError, match="A variable is created once"):
        record(lambda x: [mr.Variable(x) * 1.0], [X])


def test_a_variable_made_while_recording_is_made_once(record: Any) -> None:
    made: list[mr.Variable] = []

    def function(x: ops.Tensor) -> list[ops.Tensor]:
        made.append(mr.Variable(np.float32(1.0)))
        made[0].assign_add(1.0)
        return [x * made[0]]

    recorded = record(function, [X])
    for step in range(1, 4):
        np.testing.assert_array_equal(recorded(X)[0], (1 + step) * X)
    assert len(made) == 1


# ------------------------------------------------------------------------------ devices


def test_copies_between_devices(simulate: Callable[..., Any]) -> None:
    first, second = (devices.get_device(each.name) for each in simulate(2))
    recorder = GraphRecorder()
    x = recorder.input(ops.TensorSpec((2, 3), ops.float32), first, 0)
    with recorded_by(recorder):
        there = x.copy_to(second)
        assert x.copy_to(first) is x
        with mr.device("GPU:1"):
            results = [there * 2.0, x + 1.0]  # Inputs are copied to where an op runs.
    graph = recorder.finish(results)
    assert {node.device for node in graph.nodes} == {second}
    assert [node.op.name for node in graph.nodes].count("_Send") == 1
    program = Program(graph)
    program.inputs[0][...] = X
    program.run(1)
    np.testing.assert_array_equal(program.outputs[0], 2 * X)
    np.testing.assert_array_equal(program.outputs[1], 1 + X)


def test_the_numbers_of_python_are_not_read_back(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host knows them, and most of what is made of them: it waits for no card meanwhile."""
    emulated_cuda()
    for name in ("to_host", "copy_from_host", "run"):
        monkeypatch.setattr(CudaBackend, name, lambda *args: pytest.fail("A card was asked."))
    recorder = GraphRecorder()
    with mr.device("GPU:0"), recorded_by(recorder):
        x = recorder.input(ops.TensorSpec((2, 3), ops.float32), devices.get_device("GPU:0"), 0)
        result = x * 2.0 + [2.0, 2.0, 2.0] + mr.constant([1.0, 2.0, 3.0]) + 2.0
        result += mr.reshape(mr.ones((3, 1)) / 4.0, (3,)) * [1.0, 2.0, 3.0]
        result += mr.concat([mr.zeros_like(x[:1]), mr.broadcast_to(5.0, (1, 3))], 0)
    graph = recorder.finish([result])
    data = [
        value.data.tolist()
        for node in graph.nodes
        for value in node.inputs
        if value.constant is None and value.data is not None
    ]
    assert data == [2.0, 2.0, [1.0, 2.0, 3.0], 2.0, [0.25, 0.5, 0.75], [[0.0] * 3, [5.0] * 3]]
