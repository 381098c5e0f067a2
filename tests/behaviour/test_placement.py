"""Rows of docs/reference/behaviour-rows.md on placement: names in the log, ops that leave the CPU.

The names are TensorFlow's; scripts and people look for them.
"""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr

Simulate = Callable[..., Any]
FULL = "/job:localhost/replica:0/task:0/device:"

# What is done with the matrix m and the variable v, and the operations that the log shows.
OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "constant": (lambda m, v: mr.constant(1.0), ["_EagerConst"]),
    "matmul": (lambda m, v: mr.matmul(m, m), ["MatMul"]),
    "+": (lambda m, v: m + m, ["AddV2"]),
    "-": (lambda m, v: m - m, ["Sub"]),
    "*": (lambda m, v: m * m, ["Mul"]),
    "add_n": (lambda m, v: mr.add_n([m, m]), ["AddN"]),
    "reduce_sum": (lambda m, v: mr.reduce_sum(m), ["Sum"]),
    "transpose": (lambda m, v: mr.transpose(m), ["Transpose"]),
    "cast": (lambda m, v: mr.cast(m, mr.int32), ["Cast"]),
    "uniform": (lambda m, v: mr.random.uniform((2,)), ["RandomUniform"]),
    "zeros": (lambda m, v: mr.zeros((2,)), ["Fill"]),
    "identity": (lambda m, v: mr.identity(m), ["Identity"]),
    "variable": (lambda m, v: mr.Variable(m), ["VarHandleOp", "AssignVariableOp"]),
    "assign": (lambda m, v: v.assign(m), ["AssignVariableOp"]),
    "read": (lambda m, v: v.read_value(), ["ReadVariableOp"]),
}


@pytest.mark.behaviour("operation-names")
@pytest.mark.parametrize(("act", "names"), OPERATIONS.values(), ids=OPERATIONS)
def test_names_of_operations(
    simulate: Simulate,
    caplog: pytest.LogCaptureFixture,
    act: Callable[[Any, Any], Any],
    names: list[str],
) -> None:
    simulate(1)
    m = mr.constant([[1.0, 2.0], [3.0, 4.0]])
    v = mr.Variable(m)
    mr.debugging.set_log_device_placement(True)
    caplog.clear()
    act(m, v)
    assert caplog.messages == [f"Executing op {name} in device {FULL}GPU:0" for name in names]


@pytest.mark.behaviour("cpu-only")
@pytest.mark.parametrize("soft", [True, False])
def test_casts_and_integers_are_on_gpus(simulate: Simulate, soft: bool) -> None:
    """TensorFlow's guide calls the cast CPU-only, and old versions kept int32 variables there."""
    simulate(1)
    mr.config.set_soft_device_placement(soft)
    with mr.device("GPU:0"):
        v = mr.Variable(3)
        cast = mr.cast(v, mr.float32)
    assert (v.dtype, v.device, cast.device) == (mr.int32, f"{FULL}GPU:0", f"{FULL}GPU:0")
