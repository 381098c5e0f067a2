"""Which nodes one kernel computes: what may be fused, and a loss with its gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.ops.hooks import active_recorder
from mirrored.program import kernel_fusion
from mirrored.program.dataflow import Graph, is_between
from mirrored.program.kernel_fusion import group
from mirrored.program.schedule import FusedGroup

X = np.zeros((4, 3), np.float32)
ROW = np.zeros((3,), np.float32)
ONE = np.zeros((1,), np.float32)
LABELS = np.zeros((4,), np.int32)

bias_add = ops.OPS["BiasAdd"]


def grouped(graph: Graph) -> list[str]:
    """Return the phases of a graph: 'A+B' for a fused group, '[A]', '[A, B]' for other kernels."""
    found = []
    for phase in group(graph.nodes):
        names = [node.op.name for node in phase.nodes]
        found.append("+".join(names) if isinstance(phase, FusedGroup) else f"[{', '.join(names)}]")
    return found


def relu_with_gradient(x: Any, bias: Any) -> list[Any]:
    with mr.GradientTape() as tape:
        tape.watch(bias)
        y = ops.relu(bias_add(x, bias)) * 3.0
    return [y, tape.gradient(y, bias)]


# The function, its arguments, and how its nodes are grouped.
TABLE: dict[str, tuple[Callable[..., Sequence[Any]], tuple[Any, ...], list[str]]] = {
    "a bias and an activation": (
        lambda x, b: [ops.relu(bias_add(x, b))],
        (X, ROW),
        ["BiasAdd+Relu"],
    ),
    "what follows a product": (
        lambda x, y: [ops.relu(x @ ops.transpose(y) + 1.0) * 2.0],
        (X, X),
        ["[Transpose]", "[MatMul]", "AddV2+Relu+Mul"],
    ),
    "dtypes on the way": (
        lambda x: [ops.cast(x > 0.0, "float32") * x],
        (X,),
        ["Greater+Cast+Mul"],
    ),
    "another shape of as many elements": (
        lambda x: [ops.reshape(x * 2.0, (12,)) + 1.0],
        (X,),
        ["Mul+AddV2"],
    ),
    "two sizes, by turns": (
        lambda x, b: [x * 2.0, b * 3.0, x + 1.0, b - 1.0],
        (X, ROW),
        ["Mul+AddV2", "Mul+Sub"],
    ),
    "one element of any shape": (
        lambda x: [ops.reshape(x, (1, 1)) * 2.0, ops.reshape(x, ()) + 1.0],
        (ONE,),
        ["Mul+AddV2"],
    ),
    "no element": (lambda x: [x * 2.0 + 1.0], (X[:0],), ["Mul+AddV2"]),
    "a number that a kernel computed": (
        lambda x: [x * 2.0, x * ops.reduce_sum(x)],
        (X,),
        ["Mul", "[Sum]", "Mul"],
    ),
    "a number of a chain is no element of the next": (
        lambda x: [x * ops.sqrt(ops.reduce_sum(x) + 1.0)],
        (X,),
        ["[Sum]", "AddV2+Sqrt", "Mul"],
    ),
    "a row of a chain is not there as a whole": (
        lambda x, b: [x * (b * 2.0)],
        (X, ROW),
        ["Mul", "Mul"],
    ),
    "a part of what a chain computes": (lambda x: [(y := x * 2.0) + y[0]], (X,), ["Mul", "AddV2"]),
    "what waits for another kernel": (
        lambda x: [(y := x * 2.0) + ops.reduce_sum(y), y - 1.0],
        (X,),
        ["Mul", "[Sum]", "AddV2+Sub"],
    ),
    "the gradient of an activation": (
        relu_with_gradient,
        (X, ROW),
        ["BiasAdd+Relu+Mul+ReluGrad", "[BiasAddGrad]"],
    ),
}


@pytest.mark.parametrize(("function", "args", "expected"), TABLE.values(), ids=TABLE)
def test_groups(function: Any, args: Any, expected: list[str], cards: Any) -> None:
    cards.make(1)
    assert grouped(cards.record(function, *args)) == expected


def test_the_sum_of_replicas_with_what_each_makes_of_it(cards: Any) -> None:
    """All devices of a card are one memory: one kernel sums, and writes for each of them."""
    cards.make(2)

    def function(x: Any, y: Any) -> list[Any]:
        parts = []
        for number, each in enumerate((x, y)):
            with cards.replica(number):
                parts.append(each * (number + 2.0))
        recorder: Any = active_recorder()
        total = recorder.sum_over_devices(parts, devices.get_device("GPU:0"))
        with mr.device("GPU:1"):
            other = ops.identity(total) + 1.0
        return [total * 0.5, other]

    graph = cards.record(function, X, X, replicas=2)
    (found,) = grouped(graph)
    assert sorted(found.split("+")) == sorted(["Mul", "Mul", "AddN", "_Send", "AddV2", "Mul"])
    assert not any(map(is_between, graph.nodes))


def test_copies_between_memories_are_no_kernels(cards: Any) -> None:
    cards.make(1, 1)

    def function(x: Any) -> list[Any]:
        y = x * 2.0
        results = []
        for name in ("GPU:1", "CPU:0"):
            with mr.device(name):
                results.append(ops.identity(y) + 1.0)
        return results

    graph = cards.record(function, X)
    assert grouped(graph) == ["Mul", "[_Send]", "AddV2", "[_Send]", "[AddV2]"]
    assert [is_between(node) for node in graph.nodes] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("name", "function", "most"),
    [
        ("_MOST_NODES", lambda *xs: [ops.tanh(xs[0]) + float(i) for i in range(9)], 4),
        ("_MOST_INPUTS", lambda *xs: [ops.tanh(x) for x in xs], 3),
    ],
)
def test_groups_have_an_end(
    name: str, function: Any, most: int, cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards.make(1)
    graph = cards.record(function, *[X] * 10)
    assert len(group(graph.nodes)) == 1
    monkeypatch.setattr(kernel_fusion, name, most)
    sizes = [len(phase.nodes) for phase in group(graph.nodes)]
    assert max(sizes) <= most
    assert sum(sizes) == 10


# ------------------------------------------------------------------------------ pairs


def sparse(logits: Any, labels: Any) -> Any:
    return ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def dense(logits: Any, labels: Any) -> Any:
    return ops.softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def differentiated(loss: Any, reduce: Any) -> Callable[..., list[Any]]:
    def function(logits: Any, labels: Any) -> list[Any]:
        with mr.GradientTape() as tape:
            tape.watch(logits)
            total = reduce(loss(logits, labels))
        return [total, tape.gradient(total, logits)]

    return function


@pytest.mark.parametrize(
    ("loss", "labels", "name"),
    [
        (sparse, LABELS, "SparseSoftmaxCrossEntropy"),
        (dense, X, "SoftmaxCrossEntropy"),
    ],
)
def test_a_loss_with_its_gradient(loss: Any, labels: Any, name: str, cards: Any) -> None:
    cards.make(1)
    pair = f"[{name}WithLogits, {name}Grad]"
    assert pair in grouped(cards.record(differentiated(loss, ops.reduce_mean), X, labels))
    # Of the square the gradient needs the loss itself, as a whole.
    graph = cards.record(differentiated(loss, lambda x: ops.reduce_sum(x * x)), X, labels)
    found = grouped(graph)
    assert pair not in found
    assert f"[{name}WithLogits]" in found
    assert f"[{name}Grad]" in found


def test_of_two_gradients_one_is_computed_with_the_loss(cards: Any) -> None:
    cards.make(1)

    def function(logits: Any, labels: Any) -> list[Any]:
        with mr.GradientTape(persistent=True) as tape:
            tape.watch(logits)
            each = sparse(logits, labels)
            first, second = ops.reduce_sum(each), ops.reduce_sum(each * 3.0)
        return [first, tape.gradient(first, logits), tape.gradient(second, logits)]

    found = grouped(cards.record(function, X, LABELS))
    assert sum(phase.count("WithLogits") for phase in found) == 1
    assert sum(phase.count("Grad") for phase in found) == 2
    assert sum("WithLogits" in phase and "Grad" in phase for phase in found) == 1


def test_the_cpu_has_no_pairs_and_no_chains(cards: Any) -> None:
    cards.make(1)

    def function(x: Any, labels: Any) -> list[Any]:
        with mr.device("CPU:0"):
            here = ops.identity(x)
            return differentiated(sparse, ops.reduce_mean)(here * 2.0, ops.identity(labels))

    graph = cards.record(function, X, LABELS)
    phases = group([node for node in graph.nodes if node.device.type == "CPU"])
    assert all(len(phase.nodes) == 1 and not isinstance(phase, FusedGroup) for phase in phases)
