"""Which nodes one kernel computes together, what it keeps to itself, and what stands in the way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plan_checker import PlanChecker

import mirrored as mr
from mirrored import ops
from mirrored.program.executor import make_program
from mirrored.program.kernel_fusion import Readers, units

X = np.random.default_rng(3).normal(size=(8, 5)).astype(np.float32)
W = np.random.default_rng(4).normal(size=(5, 4)).astype(np.float32)
B = np.random.default_rng(5).normal(size=(4,)).astype(np.float32)
LABELS = np.arange(8) % 4

bias_add = ops.OPS["BiasAdd"]
LOSS = ("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyGrad")

Found = list[tuple[str, ...]]


def together(graph: Any) -> Found:
    """Return the names of what is computed together."""
    kernels = units(graph.nodes, Readers(graph, graph.nodes))
    assert sorted(map(id, graph.nodes)) == sorted(id(node) for nodes in kernels for node in nodes)
    return [tuple(node.op.name for node in nodes) for nodes in kernels if len(nodes) > 1]


def layer(x: Any, w: Any, b: Any, *, more: Callable[..., list[Any]] = lambda *_: []) -> list[Any]:
    """Return the loss of a layer and its gradients."""
    with mr.GradientTape() as tape:
        tape.watch([w, b])
        logits = bias_add(x @ w, b)
        each = ops.sparse_softmax_cross_entropy_with_logits(labels=LABELS, logits=logits)
        loss = ops.reduce_mean(each)
    return [loss, *tape.gradient(loss, [w, b]), *more(logits)]


def two_layers(x: Any, w: Any, b: Any) -> list[Any]:
    with mr.GradientTape() as tape:
        tape.watch([w, b])
        y = ops.relu(bias_add(x @ w, b))
        loss = ops.reduce_sum(ops.softmax(y @ ops.transpose(y)))
    return tape.gradient(loss, [w, b])


def narrow(x: Any, w: Any, b: Any, *, more: Callable[..., list[Any]] = lambda *_: []) -> list[Any]:
    """Return gradients of float32 of a product in bfloat16."""
    with mr.GradientTape() as tape:
        tape.watch([w, b])
        y = bias_add(ops.cast(x, "bfloat16") @ ops.cast(w, "bfloat16"), ops.cast(b, "bfloat16"))
        loss = ops.reduce_sum(ops.square(ops.cast(y, "float32")))
    return [*tape.gradient(loss, [w, b]), *more(y)]


def mixed(x: Any, w: Any, b: Any, *, more: Callable[..., list[Any]] = lambda *_: []) -> list[Any]:
    """Return the loss of a layer in bfloat16, in float32, and its gradients."""
    with mr.GradientTape() as tape:
        tape.watch([w, b])
        product = ops.cast(x, "bfloat16") @ ops.cast(w, "bfloat16")
        logits = ops.cast(bias_add(product, ops.cast(b, "bfloat16")), "float32")
        each = ops.sparse_softmax_cross_entropy_with_logits(labels=LABELS, logits=logits)
        loss = ops.reduce_mean(each)
    return [loss, *tape.gradient(loss, [w, b]), *more(logits)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (layer, [("BiasAdd", *LOSS)]),
        (lambda *args: layer(*args, more=lambda y: [y * 2.0]), [("BiasAdd", *LOSS)]),
        (lambda *args: layer(*args, more=lambda y: [y]), [("BiasAdd", *LOSS)]),
        (two_layers, [("ReluGrad", "BiasAddGrad")]),
        (narrow, [("MatMul", "Cast"), ("BiasAddGrad", "Cast")]),
        (
            lambda *args: mixed(*args, more=lambda y: [ops.argmax(y, 1)]),
            [("BiasAdd", "Cast", *LOSS, "Cast"), ("MatMul", "Cast"), ("BiasAddGrad", "Cast")],
        ),
    ],
    ids=["loss", "logits that are read", "logits that are returned", "ReLU", "bfloat16", "mixed"],
)
def test_units(function: Callable[..., list[Any]], expected: Found, cards: Any) -> None:
    cards.make(1)
    graph = cards.record(function, X, W, B)
    assert sorted(together(graph)) == sorted(expected)
    PlanChecker(graph, streams=True).check()


def test_what_is_read_by_others_is_not_kept_within_a_kernel(cards: Any) -> None:
    """A product that is returned itself, beside its cast."""
    cards.make(1)

    def function(x: Any, w: Any) -> list[Any]:
        y = ops.matmul(ops.cast(x, "bfloat16"), ops.cast(w, "bfloat16"), transpose_a=True)
        return [y, ops.cast(y, "float32")]

    assert together(cards.record(function, X, X)) == []
    alone = cards.record(lambda x, w: function(x, w)[1:], X, X)
    assert together(alone) == [("MatMul", "Cast")]


def test_a_product_of_layers_is_rounded(cards: Any) -> None:
    cards.make(1)

    def function(x: Any, w: Any) -> list[Any]:
        return [ops.cast(ops.cast(x, "bfloat16") @ ops.cast(w, "bfloat16"), "float32")]

    assert together(cards.record(function, X, W)) == []


def test_nothing_that_a_unit_needs_depends_on_it(cards: Any) -> None:
    """Two gradients, each of which is scaled by what comes of the other one's sum."""
    cards.make(1)
    relu_grad, sums = ops.OPS["ReluGrad"], ops.OPS["BiasAddGrad"]

    def function(g: Any, y: Any) -> list[Any]:
        first = relu_grad(g, y)
        second = relu_grad(g * ops.reduce_sum(sums(first)), y)
        return [sums(second), first, second]

    graph = cards.record(function, X, np.abs(X))
    assert together(graph) == [("ReluGrad", "BiasAddGrad")] * 2
    found = run(graph, X, np.abs(X))
    np.testing.assert_allclose(found[0], (X * X.sum()).sum(0), rtol=1e-4)


@pytest.mark.parametrize(
    "more", [lambda y: [], lambda y: [y], lambda y: [ops.argmax(y, 1), y * 2.0]]
)
def test_bits_are_those_of_eager_calls(more: Callable[..., list[Any]], cards: Any) -> None:
    cards.make(1)

    def function(x: Any, w: Any, b: Any) -> list[Any]:
        # Those of weights' gradients in mixed precision are not: they are not rounded on the way.
        return [*layer(x, w, b, more=more), *two_layers(x, w, b), mixed(x, w, b, more=more)[0]]

    recorded = run(cards.record(function, X, W, B), X, W, B)
    with mr.device(cards.names[0]):
        eager = [each.numpy() for each in function(*map(mr.constant, (X, W, B)))]
    assert [each.tobytes() for each in recorded] == [each.tobytes() for each in eager]


@pytest.mark.parametrize(("function", "rows"), [(two_layers, 8), (mixed, 8), (narrow, 1)])
def test_gradients_of_biases_alone(
    function: Callable[..., list[Any]], rows: int, cards: Any
) -> None:
    """As where kernels are frozen: what they are sums of has no memory."""
    cards.make(1)
    x = X[:rows]
    (bias,) = run(cards.record(lambda *args: function(*args)[-1:], x, W, B), x, W, B)
    with mr.device("CPU:0"):
        expected = function(*map(mr.constant, (x, W, B)))[-1].numpy()
    np.testing.assert_allclose(
        bias, expected, rtol=1e-4 if function is two_layers else 1e-2, atol=1e-5
    )


def run(graph: Any, *arrays: Any) -> list[Any]:
    program = make_program(graph, 1)
    program.run(1, list(arrays))
    values = zip(graph.outputs, program.outputs, strict=True)
    return [value.device.backend.to_host(array) for value, array in values]
