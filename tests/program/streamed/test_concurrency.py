"""In which order a step's kernels run, and that replicas run side by side."""

import functools
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.concurrency import Streams
from mirrored.program.dataflow import SHARED
from mirrored.program.schedule import Guard, make_schedule

X = np.zeros((4, 3), np.float32)


def scheduled(graph: Any) -> list[Any]:
    return make_schedule(graph, Streams(graph)).stages


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_sums_over_cards_start_when_their_gradients_are_there(layers: int, cards: Any) -> None:
    """The rest of the way back comes behind them, and nothing waits for them before the end."""
    cards.make(1, 1)
    connection = cards.unconnected()
    graph = cards.record(functools.partial(cards.gradients, connection, layers), X, X, replicas=2)
    stages = scheduled(graph)
    asked = [launches[0].collective for launches in stages]
    assert [each.what for each in asked if each] == [f"layer {i}" for i in range(layers)]
    done: set[Any] = set()
    *stages, (guard,) = stages
    assert isinstance(guard.phases[0], Guard)
    assert guard.waits == layers  # Nobody writes before all sums are there.
    for number, launches in enumerate(stages):
        collective = launches[0].collective
        if collective is None:
            # Work goes on beside what is being summed, without a wait for the other card.
            assert sorted({n.replica for launch in launches for n in launch.nodes()}) == [0, 1]
            assert all(launch.meets == (number == 0) and not launch.waits for launch in launches)
            done |= {node for launch in launches for node in launch.nodes()}
            continue
        assert {value.node for value in collective.sends()} <= done
        # What it sums ends the stage before it: nothing later had to be computed first.
        last = [list(launch.nodes())[-1] for launch in stages[number - 1]]
        assert {value.node for value in collective.sends()} == set(last)


def test_all_ranks_take_part_whoever_reads_the_sums(cards: Any) -> None:
    cards.make(1, 1)
    connection = cards.unconnected()

    def function(*inputs: Any) -> list[Any]:
        recorder: Any = active_recorder()
        parts = []
        for number, x in enumerate(inputs):
            with cards.replica(number):
                parts.append(ops.softmax(x))
        unread = recorder.all_reduce(parts, connection, what="unread", timeout=1.0)
        assert len(unread) == 2
        return [recorder.all_reduce(parts, connection, what="read", timeout=1.0)[1] * 2.0]

    graph = cards.record(function, X, X, replicas=2)
    stages = scheduled(graph)
    asked = [launches[0].collective for launches in stages if launches[0].collective]
    assert [each.what for each in asked] == ["read"]
    assert len(asked[0].nodes) == 2
    # The copy of the one that is read waits for it, and what comes behind that need not again.
    assert [launches[0].waits for launches in stages] == [0, 0, 1, 0, 1]
    assert isinstance(stages[-1][0].phases[0], Guard)


@pytest.mark.parametrize("parts", [(1,), (2,), (4,), (1, 1)], ids=str)
def test_replicas_run_side_by_side(parts: tuple[int, ...], cards: Any) -> None:
    names = cards.make(*parts)

    def function(*inputs: Any) -> list[Any]:
        parts = []
        for number, x in enumerate(inputs):
            with cards.replica(number):
                parts.append(ops.softmax(x @ ops.transpose(x)))
        return [ops.add_n([ops.identity(part) for part in parts])]

    graph = cards.record(function, *[X] * len(names), replicas=len(names))
    first = scheduled(graph)[0]
    sides: dict[int, Any] = {}
    for launch in first:
        replicas = {node.replica for node in launch.nodes()}
        assert len(replicas) == 1
        sides.setdefault(replicas.pop(), []).append(launch.backend)
    assert sorted(sides) == list(range(len(names)))
    assert len({backend for backends in sides.values() for backend in backends}) == len(first)


def test_what_is_joint_runs_behind_all_replicas(cards: Any) -> None:
    cards.make(2)

    def function(x: Any, y: Any) -> list[Any]:
        with cards.replica(0):
            a = ops.softmax(x)
        with cards.replica(1):
            b = ops.softmax(y)
        total = a + ops.identity(b)
        with cards.replica(0):
            c = ops.softmax(total)
        with cards.replica(1):
            d = ops.softmax(ops.identity(total))
        return [c, d]

    graph = cards.record(function, X, X, replicas=2)
    stages = scheduled(graph)
    found = [
        {node.replica for launch in launches for node in launch.nodes()} for launches in stages
    ]
    where = found.index({SHARED})
    assert {0, 1} <= set().union(*found[:where])
    assert {0, 1} <= set().union(*found[where + 1 :])


def test_work_of_the_host_and_copies_are_tracks_of_their_own(cards: Any) -> None:
    cards.make(1)

    def function(x: Any) -> list[Any]:
        y = x * 2.0
        with mr.device("CPU:0"):
            z = ops.identity(y) + 1.0
        return [ops.identity(z) * 3.0]

    stages = scheduled(cards.record(function, X))
    found = [(launch.between, [n.op.name for n in launch.nodes()]) for (launch,) in stages]
    assert found == [
        (False, ["Mul"]),
        (True, ["_Send", "AddV2"]),
        (True, ["_Send"]),
        (False, ["Mul"]),
    ]


def test_updates_are_behind_the_guard(cards: Any) -> None:
    cards.make(2)
    with mr.device("GPU:0"):
        variable = mr.Variable(X)

    def function(x: Any, y: Any) -> list[Any]:
        with cards.replica(0):
            a = ops.tanh(x)
        with cards.replica(1):
            b = ops.tanh(y)
        recorder: Any = active_recorder()
        recorder.require_finite((ops.reduce_sum(a),))
        variable.assign_add(a + ops.identity(b))
        return [a]

    stages = scheduled(cards.record(function, X, X, replicas=2))
    guards = [isinstance(launches[0].phases[0], Guard) for launches in stages]
    behind = stages[guards.index(True) + 1 :]
    late = [node.op.name for launches in behind for launch in launches for node in launch.nodes()]
    assert "AssignAddVariableOp" in late
    assert "Tanh" not in late


def test_nothing_to_do(cards: Any) -> None:
    cards.make(1)
    assert scheduled(cards.record(lambda x: [x], X)) == []
