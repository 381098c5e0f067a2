"""Who is chosen to run a program: a function of its work, its replicas and the cores."""

from typing import Any

import pytest

from mirrored import devices, ops
from mirrored.ops.hooks import recorded_by
from mirrored.ops.rng_state import ShardPosition, shard_position
from mirrored.program import GraphRecorder, executor
from mirrored.program.concurrency import Threads
from mirrored.program.executor import choose_executor
from mirrored.program.schedule import make_schedule


def graph_of(products: list[tuple[int, int]]) -> Any:
    """Return a graph of products of so many thousand operations, each in a replica."""
    recorder, device = GraphRecorder(), devices.get_device("CPU:0")
    outputs = []
    for thousands, replica in products:
        a, b = (
            recorder.input(ops.TensorSpec(shape, ops.float32), device, replica)
            for shape in ((thousands, 10), (10, 50))
        )
        with recorded_by(recorder):
            outputs.append(ops.tanh(a @ b))
    return recorder.finish(outputs)


BIG, SMALL = 21_000, 19_000  # A replica's thread pays from 20 million operations on.
WIDE, NARROW = 101_000, 99_000  # A product uses BLAS's threads from 100 million operations on.
# Replicas, cores, the executor asked for, thousands of operations of each product: the answer.
RULE: dict[str, tuple[int, int, str, list[int], tuple[int, int | None]]] = {
    "enough work for each": (2, 2, "auto", [BIG, BIG], (2, 1)),
    "enough in several products": (2, 2, "auto", [BIG // 3] * 6, (2, 1)),
    "too little": (2, 2, "auto", [SMALL, SMALL], (1, 1)),
    "one replica": (1, 2, "auto", [WIDE], (1, 1)),
    "one replica on threads": (1, 2, "threads", [WIDE], (1, 1)),
    "one replica with small products": (1, 2, "auto", [NARROW] * 4, (1, 1)),
    "one core": (2, 1, "auto", [WIDE, WIDE], (1, 1)),
    "one core, told to": (2, 1, "threads", [BIG, BIG], (2, 1)),
    "more replicas than cores": (3, 2, "auto", [BIG] * 3, (3, 1)),
    "told to on little work": (3, 2, "threads", [1], (3, 1)),
    "told not to": (2, 8, "serial", [WIDE, WIDE], (1, 1)),
    "told not to on little work": (2, 8, "serial", [NARROW], (1, 1)),
    "a wide product": (1, 8, "auto", [1, WIDE], (1, 1)),
    "no product": (2, 2, "auto", [], (1, None)),
}


@pytest.mark.parametrize(
    ("replicas", "cores", "wanted", "products", "expected"), RULE.values(), ids=RULE
)
def test_the_rule(
    replicas: int,
    cores: int,
    wanted: str,
    products: list[int],
    expected: tuple[int, int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "available_threads", lambda: cores)
    graph = graph_of([(each, i % replicas) for i, each in enumerate(products)])
    assert choose_executor(graph, make_schedule(graph, Threads()), replicas, wanted) == expected


def test_the_blocks_of_a_large_convolution_are_products_of_one_thread() -> None:
    recorder, device = GraphRecorder(), devices.get_device("CPU:0")
    x, w = (
        recorder.input(ops.TensorSpec(shape, ops.float32), device, 0)
        for shape in ((64, 32, 32, 32), (3, 3, 32, 32))
    )
    with recorded_by(recorder):
        y = ops.conv2d(x, w, 1, "SAME")
    graph = recorder.finish([y])
    assert sum(node.flops for node in graph.nodes) > 1e9
    assert choose_executor(graph, make_schedule(graph, Threads()), 1) == (1, 1)


@pytest.mark.parametrize(
    ("steps", "thousands", "threads"),
    [(1, BIG, 2), (1, SMALL, 1), (4, BIG, 2), (4, SMALL, 1), (8, BIG // 3, 1)],
)
def test_a_function_of_several_steps_is_one_of_each(
    steps: int, thousands: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is the work between two meetings, however many steps a function takes."""
    monkeypatch.setattr(executor, "available_threads", lambda: 2)
    recorder, device = GraphRecorder(), devices.get_device("CPU:0")
    inputs = [
        [recorder.input(ops.TensorSpec(shape, ops.float32), device, replica) for shape in shapes]
        for replica, shapes in enumerate([[(thousands, 10), (10, 50)]] * 2)
    ]
    run, factor = object(), ops.constant(1.0)
    with recorded_by(recorder):
        for _ in range(steps):
            totals = []
            for replica, (a, b) in enumerate(inputs):
                with shard_position(ShardPosition(run, replica)):
                    totals.append(ops.reduce_sum((a * factor) @ b))
            factor = ops.add_n(totals)  # Where they meet.
    graph = recorder.finish([factor])
    assert choose_executor(graph, make_schedule(graph, Threads()), 2)[0] == threads


def test_a_transposed_product_takes_as_many_operations() -> None:
    recorder, device = GraphRecorder(), devices.get_device("CPU:0")
    a, b = (
        recorder.input(ops.TensorSpec(shape, ops.float32), device, 0) for shape in ((5, 7), (3, 5))
    )
    with recorded_by(recorder):
        product = ops.OPS["MatMul"](a, b, transpose_a=True, transpose_b=True)
    (node,) = recorder.finish([product]).nodes
    assert node.flops == 2 * 7 * 5 * 3
