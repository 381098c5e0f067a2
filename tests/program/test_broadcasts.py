"""Programs read what is repeated along axes as it was, and compute the bits of eager calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.program import Program
from mirrored.program.broadcasts import without_broadcasts

X = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
ROW = X[:1]


def repeated(x: Any) -> Any:
    return mr.broadcast_to(x, (4, 3))


def means(x: Any) -> Any:
    with mr.GradientTape() as tape:
        tape.watch(x)
        variance = mr.math.reduce_variance(x, axis=0)
        target = ops.reduce_sum(x / ops.sqrt(variance + 1.0)) + ops.reduce_mean(x)
    return tape.gradient(target, x)


# Functions of a matrix, and how often a program of them repeats a value.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a row": (lambda x: repeated(ROW) * x - repeated(x[:1]), 0),
    "a column": (lambda x: ops.add_n([x, repeated(x[:, :1]), x]), 0),
    "a number": (lambda x: repeated(x[:1, :1]) + x, 0),
    "several at once": (lambda x: repeated(x[:1]) + repeated(x[:, :1]), 0),
    "computed before it is repeated": (lambda x: repeated(x[:1]) * 2.0 + repeated(x[1:2]) + x, 0),
    "a result": (lambda x: [repeated(x[:1]), repeated(x[:1]) * 2.0], 2),
    "read by others": (lambda x: ops.softmax(repeated(x[:1])) + x, 1),
    "read by both": (lambda x: ops.tanh(repeated(x[:1])) + repeated(x[:1]) * x, 1),
    "viewed": (lambda x: ops.reshape(repeated(x[:1]), (12,)) + ops.reshape(x, (12,)), 1),
    "an empty one": (lambda x: mr.broadcast_to(x[:0], (0, 3)) + x[:0], 0),
    "gradients of means": (means, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_repeat_only_what_they_have_to(
    name: str, record: Any, bits: Any, check_plan: Any
) -> None:
    function, count = FUNCTIONS[name]

    def listed(x: Any) -> list[Any]:
        result = function(x)
        return result if isinstance(result, list) else [result]

    graph = without_broadcasts(record(listed, [X]).graph)
    program = Program(graph)
    program.call([X])
    assert bits(program.outputs) == bits([value.numpy() for value in listed(ops.constant(X))])
    assert sum(node.op.name == "BroadcastTo" for node in graph.nodes) == count
    check_plan(graph)


def test_variables_are_written_what_is_repeated() -> None:
    v = mr.Variable(X)

    @mr.function
    def step(x: Any) -> None:
        v.assign(repeated(x[:1]))

    step(ops.constant(X))
    np.testing.assert_array_equal(v.numpy(), np.broadcast_to(ROW, (4, 3)))
