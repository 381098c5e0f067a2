"""Where the values of a streamed program live: no two that are needed at one time overlap.

A checker plays each plan through byte by byte; it looks at the order of all nodes too.
"""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.concurrency import Streams
from mirrored.program.dataflow import Graph
from mirrored.program.schedule import make_schedule
from mirrored.program.streamed.stream_plan import StreamMemoryPlan, plan_stream_memory

X = np.zeros((4, 3), np.float32)


def seeds(count: int) -> pytest.MarkDecorator:
    """Try so many seeds: the first eighth in one test, and all others in one that is slow."""
    first = range(count // 8)
    others = pytest.param(range(count // 8, count), marks=pytest.mark.slow)
    return pytest.mark.parametrize("seeds", [first, others], ids=["an eighth", "the others"])


def planned(graph: Graph) -> StreamMemoryPlan:
    return plan_stream_memory(graph, make_schedule(graph, Streams(graph)))


@seeds(8)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("parts", [(1,), (2,), (4,), (1, 1), (2, 1)], ids=str)
def test_random_graphs(
    parts: tuple[int, ...], guarded: bool, seeds: range, cards: Any, check_plan: Any
) -> None:
    names = cards.make(*parts)
    for seed in seeds:
        check_plan(cards.random(seed, replicas=len(names), guarded=guarded), streams=True)


@seeds(8)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2, 1)], ids=str)
def test_random_graphs_with_sums_over_cards(
    parts: tuple[int, ...], guarded: bool, seeds: range, cards: Any, check_plan: Any
) -> None:
    names = cards.make(*parts)
    connection = cards.unconnected()
    for seed in seeds:
        graph = cards.random(seed, len(names), guarded=guarded, connection=connection)
        assert graph.collectives
        check_plan(graph, streams=True)


@seeds(16)
@pytest.mark.parametrize("guarded", [False, True])
def test_random_graphs_without_replicas(
    guarded: bool, seeds: range, cards: Any, check_plan: Any
) -> None:
    cards.make(1)
    for seed in seeds:
        check_plan(cards.random(seed, replicas=0, guarded=guarded), streams=True)


def test_what_passes_in_a_chain_has_no_memory(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(lambda x: [ops.tanh(x) * 2.0 + 1.0], X)
    plan, *_ = planned(graph)
    made = [node.output for node in graph.nodes]
    assert plan.locals == set(made[:-1])
    assert made[-1] in plan.blocks


def test_blocks_begin_at_256_bytes(cards: Any) -> None:
    cards.make(1)
    x = np.zeros((5,), np.float32)
    graph = cards.record(lambda x, y: [ops.softmax(x) - y, ops.reduce_sum(x), y[1:] * 2.0], x, x)
    plan, feeds, *_ = planned(graph)
    roots = [block for block in plan.blocks.values() if block.storage is None]
    assert all(block.place % 256 == 0 for block in roots)
    assert {place for feed in feeds for place in feed.places.values()} == {0, 256}


def test_what_is_fed_lies_together(cards: Any) -> None:
    """One copy a replica brings its batch, and the numbers of its draws."""
    cards.make(2)

    def function(x: Any, y: Any, z: Any) -> list[Any]:
        results = []
        for number, each in enumerate((x, y)):
            with cards.replica(number):
                results.append(each * mr.random.normal((4, 3)))
        return [*results, z + 1.0]

    graph = cards.record(function, X, X, X[0], replicas=2)
    plan, feeds, _, counters = planned(graph)
    assert [(feed.device.name, feed.replica) for feed in feeds] == [
        ("/device:GPU:0", 0),
        ("/device:GPU:1", 1),
        ("/device:GPU:0", -1),
    ]
    random = {node for node in graph.nodes if node.op.random}
    assert set(counters) == random
    assert all(value.spec == ((3,), np.uint64) for value in counters.values())
    values = [*graph.inputs, *counters.values()]
    assert {value for feed in feeds for value in feed.places} == set(values)
    for feed in feeds:
        assert feed.block.nbytes == 256 * len(feed.places)
        for value, place in feed.places.items():
            block = plan.blocks[value]
            assert (block.root, block.place) == (feed.block, place)
            assert block.nbytes == value.nbytes


@pytest.mark.parametrize("guarded", [False, True])
def test_who_writes_where_variables_live(guarded: bool, cards: Any, check_plan: Any) -> None:
    """Behind a guard chains alone do, for only those can be told to write nothing."""
    cards.make(1)
    with mr.device("GPU:0"):
        chained, computed, early = (mr.Variable(X) for _ in range(3))

    def function(x: Any) -> list[Any]:
        early.assign(ops.tanh(x))
        recorder: Any = active_recorder()
        if guarded:
            recorder.require_finite((ops.reduce_sum(x),))
        chained.assign_sub(x * 0.5)
        computed.assign(ops.softmax(chained * 2.0))
        return [x]

    graph = cards.record(function, X)
    plan, *_ = planned(graph)
    in_place = {
        value.node.op.name
        for value, block in plan.blocks.items()
        if block.storage is not None and value.node is not None
    }
    left = {id(variable) for variable, _ in plan.commits}
    assert "AssignSubVariableOp" in in_place
    assert ("Softmax" in in_place) != guarded
    assert (id(computed) in left) == guarded
    assert id(chained) not in left
    check_plan(graph, streams=True)


def test_variables_that_are_summed_are_written_behind_the_gate(cards: Any, check_plan: Any) -> None:
    cards.make(1, 1)
    connection = cards.unconnected()
    variables = []
    for name in connection.names:
        with mr.device(name):
            variables.append(mr.Variable(X))

    def function(x: Any) -> list[Any]:
        recorder: Any = active_recorder()
        values = [variable.read_value() for variable in variables]
        total = recorder.all_reduce(values, connection, what="values", timeout=1.0)[0]
        recorder.require_finite((ops.reduce_sum(x),))
        variables[0].assign_sub(x * 2.0)
        return [total]

    graph = cards.record(function, X)
    plan = check_plan(graph, streams=True)
    assert plan.commits == []  # It is written in place: no sum goes on by then.


def test_what_another_stream_reads_is_not_overwritten_by_a_group(
    cards: Any, check_plan: Any
) -> None:
    """The group is the last to read it by the order on one stream, and runs beside the other."""
    cards.make(1)

    def function(x: Any, y: Any) -> list[Any]:
        first, second = ops.softmax(x), ops.softmax(y)
        long = ops.softmax(ops.softmax(ops.concat([first, second], axis=1)))
        return [ops.softmax(ops.concat([long, ops.tanh(second)], axis=1))]

    check_plan(cards.record(function, X, X), streams=True)


class EachStep(mr.layers.Layer):
    """Calls a layer on each of three steps, whose slices have gradients that are added up."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = mr.layers.Dense(2)

    def call(self, inputs: Any) -> Any:
        steps = mr.transpose(inputs, [1, 0, 2])
        return mr.transpose(mr.stack([self.layer(steps[i]) for i in range(3)]), [1, 0, 2])


def test_what_becomes_a_part_beside_others_takes_none_of_their_memory(
    cards: Any, check_plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch sums gradients over the first of them, in what all gradients are joined in."""
    (name,) = cards.make(1)
    graphs: list[Graph] = []
    monkeypatch.setattr(
        "mirrored.program.streamed.stream_plan.make_schedule",
        lambda graph, overlap: graphs.append(graph) or make_schedule(graph, overlap),
    )
    with mr.MirroredStrategy([name]).scope():
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Embedding(4, 2), EachStep()])
        model.compile("sgd", "mse", weighted_metrics=["mae"])
    one = np.ones(1, np.float32)
    model.fit(np.zeros((1, 3)), np.zeros((1, 3, 2)), sample_weight=one, verbose=0)
    assert graphs
    for graph in graphs:
        check_plan(graph, streams=True)
