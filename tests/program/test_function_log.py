"""The placement log of recorded functions: each op once, when it is placed, then a line a call."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy, PerReplica

FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture
def logged(
    simulate: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> Callable[[Callable[[], Any]], list[str]]:
    """Return ``logged(call)``: the log's lines of a call, with short names of devices.

    What numbers functions counts all that were recorded: the lines say N.
    """
    simulate(2)
    mr.debugging.set_log_device_placement(True)

    def lines(call: Callable[[], Any]) -> list[str]:
        caplog.clear()
        call()
        short = [message.replace(FULL, "") for message in caplog.messages]
        return [
            re.sub(r"(__inference_\S+)_\d+ in", r"\1_N in", line)
            for line in short
            if not line.startswith("Reduce")
        ]

    return lines


def test_nodes_are_told_of_once(logged: Callable[..., list[str]]) -> None:
    w, x = mr.Variable([[2.0]]), mr.constant([[1.0]])

    @mr.function
    def step(x: Any) -> Any:
        y = mr.matmul(x, w) + mr.matmul(x, mr.identity(w))
        with mr.device("CPU:0"):
            return y + 1.0

    assert logged(lambda: step(x)) == [
        "ReadVariableOp: (ReadVariableOp): GPU:0",
        "MatMul: (MatMul): GPU:0",
        "ReadVariableOp_1: (ReadVariableOp): GPU:0",
        "Identity: (Identity): GPU:0",
        "MatMul_1: (MatMul): GPU:0",
        "AddV2: (AddV2): GPU:0",
        "Const: (Const): CPU:0",
        "AddV2_1: (AddV2): CPU:0",
        "Executing op __inference_step_N in device GPU:0",
    ]
    for _ in range(2):
        assert logged(lambda: step(x)) == ["Executing op __inference_step_N in device GPU:0"]
    again = logged(lambda: step(mr.identity(x)[:0]))  # Another kind of call, numbered anew.
    assert "MatMul: (MatMul): GPU:0" in again
    assert again[-1] == "Executing op __inference_step_N in device GPU:0"


def test_nodes_of_replicas(logged: Callable[..., list[str]]) -> None:
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(2.0, aggregation=mr.VariableAggregation.SUM)
        seen = mr.Variable(
            0.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )

    def replica(x: Any) -> None:
        seen.assign_add(x)
        v.assign(x * v)

    step = mr.function(lambda x: strategy.run(replica, (x,)))
    x = PerReplica([mr.constant(1.0), mr.constant(3.0)])
    of_replica = ["AssignAddVariableOp", "ReadVariableOp", "Mul"]
    call = "Executing op __inference_<lambda>_N in device GPU:0"
    assert logged(lambda: step(x)) == [
        *[f"{name}: ({name}): GPU:0" for name in of_replica],
        *[f"replica_1/{name}: ({name}): GPU:1" for name in of_replica],
        "AddN: (AddN): CPU:0",
        "Identity: (Identity): CPU:0",
        "AssignVariableOp: (AssignVariableOp): GPU:0",
        "AssignVariableOp_1: (AssignVariableOp): GPU:1",
        # What an assign returns to each replica.
        "ReadVariableOp_1: (ReadVariableOp): GPU:0",
        "replica_1/ReadVariableOp_1: (ReadVariableOp): GPU:1",
        call,
    ]
    assert logged(lambda: step(x)) == [call]
    assert (float(v), float(seen)) == (32.0, 8.0)


def test_what_is_made_on_the_way_is_executed(logged: Callable[..., list[str]]) -> None:
    made: list[Any] = []

    @mr.function
    def step(x: Any) -> Any:
        if not made:
            made.append(mr.Variable(3.0))
        return x * made[0]

    x = mr.constant(1.0)
    assert logged(lambda: step(x)) == [
        "Executing op _EagerConst in device GPU:0",
        "Executing op VarHandleOp in device GPU:0",
        "Executing op AssignVariableOp in device GPU:0",
        "ReadVariableOp: (ReadVariableOp): GPU:0",
        "Mul: (Mul): GPU:0",
        "Executing op __inference_step_N in device GPU:0",
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_function_that_is_recorded_twice_is_told_of_once(
    logged: Callable[..., list[str]], count: int
) -> None:
    """An optimizer brings its variables together, which changes what the first recording is of."""
    strategy = MirroredStrategy([f"GPU:{i}" for i in range(count)])
    with strategy.scope():
        weights = [mr.Variable([1.0, 2.0]), mr.Variable([3.0])]
        optimizer = mr.optim.SGD(0.5, momentum=0.5)

    def replica() -> None:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(weights[0] * 2.0) + mr.reduce_sum(weights[1])
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    step = mr.function(lambda: strategy.run(replica))
    lines = logged(step)
    nodes = [line.split(": ")[0] for line in lines if not line.startswith("Executing")]
    assert len(nodes) == len(set(nodes))
    assert sum("__inference" in line for line in lines) == 1
    assert lines[-1].startswith("Executing op __inference_<lambda>_N")
    products = "Mul" in nodes, "replica_1/Mul" in nodes
    assert products == (True, count == 2)
    assert logged(step) == ["Executing op __inference_<lambda>_N in device GPU:0"]


def test_a_call_that_runs_python_is_logged_as_python(logged: Callable[..., list[str]]) -> None:
    double, x = mr.function(lambda x: x + x), mr.constant(1.0)

    def under_a_tape() -> None:
        with mr.GradientTape():
            double(x)

    assert logged(under_a_tape) == ["Executing op AddV2 in device GPU:0"]
    outer = mr.function(lambda x: double(x) * x)
    assert logged(lambda: outer(x)) == [
        "AddV2: (AddV2): GPU:0",
        "Mul: (Mul): GPU:0",
        "Executing op __inference_<lambda>_N in device GPU:0",
    ]


def test_numbers_tell_functions_apart(
    logged: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    def step(x: Any) -> Any:
        return x * x

    first, second, x = mr.function(step), mr.function(step), mr.constant(1.0)
    names = []
    for function in (first, second, first):
        caplog.clear()
        function(x)
        names.append(caplog.messages[-1].split()[2])
    assert names[0] == names[2] != names[1]
    assert all(re.fullmatch(r"__inference_step_\d+", name) for name in names)


def test_without_the_log_nothing_is_said(logged: Callable[..., list[str]]) -> None:
    mr.debugging.set_log_device_placement(False)
    double = mr.function(lambda x: x + x)
    assert logged(lambda: double(mr.constant(1.0))) == []
