"""What strategies log: the line when one is made, and where each op runs."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices
from mirrored.distribute import MirroredStrategy

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


def messages(caplog: pytest.LogCaptureFixture, start: str) -> list[str]:
    """Return the log's lines that begin with `start`."""
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if line.startswith(start)]


# Making one


@pytest.mark.behaviour("strategy-log")
def test_the_line_in_the_log(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    simulate(2)
    MirroredStrategy()
    MirroredStrategy(["CPU:0"])
    assert messages(caplog, "Using") == [
        f"Using MirroredStrategy with devices ('{FULL}GPU:0', '{FULL}GPU:1')",
        f"Using MirroredStrategy with devices ('{FULL}CPU:0',)",
    ]
    assert {record.levelno for record in caplog.records} == {logging.INFO}


# The placement log


@pytest.mark.behaviour("log-of-a-mirrored-variable")
@pytest.mark.parametrize(
    "initial",
    [3.0, lambda: mr.constant(3.0), np.float32(3.0)],
    ids=["number", "function", "NumPy"],
)
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_placement_log_of_a_mirrored_variable(
    simulate: Simulate, caplog: pytest.LogCaptureFixture, initial: Any, dtype: str | None
) -> None:
    simulate(4)
    strategy = MirroredStrategy()
    mr.debugging.set_log_device_placement(True)
    with strategy.scope():
        mr.Variable(initial, dtype=dtype)
    expected = [("_EagerConst", 0), ("VarHandleOp", 0), ("AssignVariableOp", 0)]
    for i in (1, 2, 3):
        expected += [
            ("ReadVariableOp", 0),
            ("Identity", i),
            ("VarHandleOp", i),
            ("AssignVariableOp", i),
        ]
    assert messages(caplog, "Executing") == [
        f"Executing op {name} in device {FULL}GPU:{i}" for name, i in expected
    ]


@pytest.mark.behaviour("four-gpus-by-hand")
def test_by_hand_on_four_gpus(simulate: Simulate, caplog: pytest.LogCaptureFixture) -> None:
    gpus = simulate(4)
    mr.debugging.set_log_device_placement(True)
    products = []
    for gpu in gpus:
        with mr.device(gpu.name):
            a = mr.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
            b = mr.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            products.append(mr.matmul(a, b))
    with mr.device("/CPU:0"):
        total = mr.add_n(products)
    assert total.numpy().tolist() == [[88.0, 112.0], [196.0, 256.0]]
    assert total.device == f"{FULL}CPU:0"
    assert messages(caplog, "Executing") == [
        *[
            f"Executing op {name} in device {FULL}GPU:{i}"
            for i in range(4)
            for name in ("_EagerConst", "_EagerConst", "MatMul")
        ],
        f"Executing op AddN in device {FULL}CPU:0",
    ]


def test_the_log_of_a_run_is_the_same_every_time(
    simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(2.0, aggregation=mr.VariableAggregation.SUM)
    mr.debugging.set_log_device_placement(True)

    def replica() -> None:
        v.assign_add(v * 3.0)

    logs = []
    for _ in range(3):
        caplog.clear()
        strategy.run(replica)
        logs.append(messages(caplog, "Executing"))
    assert logs[0] == [
        *[
            f"Executing op {name} in device {FULL}GPU:{i}"
            for i in range(2)
            for name in ("ReadVariableOp", "_EagerConst", "Mul")
        ],
        f"Executing op AddN in device {FULL}CPU:0",
        f"Executing op Identity in device {FULL}CPU:0",
        *[f"Executing op AssignAddVariableOp in device {FULL}GPU:{i}" for i in range(2)],
        # What the assign returns to each replica, read there as in TensorFlow.
        *[f"Executing op ReadVariableOp in device {FULL}GPU:{i}" for i in range(2)],
    ]
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]
    assert v.numpy() == 2.0 * 7**3  # v + 2 (3 v), three times.
    assert devices.get_log_device_placement()


def test_without_a_strategy_nothing_is_said_of_reducing(caplog: pytest.LogCaptureFixture) -> None:
    model = mr.Sequential([mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    with caplog.at_level("INFO", logger="mirrored"):
        model.fit(np.ones((4, 2)), np.ones(4), verbose=0)
        model.evaluate(np.ones((4, 2)), np.ones(4), verbose=0)
    assert not [message for message in caplog.messages if message.startswith("Reduce to")]
