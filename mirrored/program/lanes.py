"""Replicas of a recorded step that run one after another, on one thread or stream: a lane.

A lane has one memory for all its replicas, and adds what they sum as soon as it is there, so few
partial sums are alive at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mirrored.program.dataflow import COPY, SHARED, Graph, Node
from mirrored.program.replay import Feeder

# What only brings replicas' values together. It moves to the lane that has all of its inputs.
_JOINING = frozenset(("AddN", "ConcatV2", COPY.name))


def put_in_lanes(graph: Graph, lanes: Sequence[int]) -> None:
    """Number what replicas compute by lanes, and order it as these compute it.

    Args:
        graph: A recorded graph, whose values have the numbers of replicas.
        lanes: The lane of each replica.
    """
    graph.lanes = tuple(lanes)
    for value in graph.inputs:
        if value.replica != SHARED:
            value.replica = lanes[value.replica]
    # When a node runs: as it was recorded, or right after what it brings together.
    turns: dict[Node, int] = {}
    for i, node in enumerate(graph.nodes):
        turns[node] = i
        if node.replica != SHARED:
            node.replica = lanes[node.replica]
        if node.op.name in _JOINING and not node.updates:
            computed = [value.base for value in node.inputs if value.base.storage is None]
            numbers = {base.replica for base in computed if base.constant is None}
            if len(numbers) == 1 and node.replica in (SHARED, *numbers):
                (node.replica,) = numbers
            if node.replica != SHARED:
                turns[node] = max((turns[n] for n in node.before()), default=i)
        node.output.replica = node.replica
    graph.nodes.sort(key=lambda node: turns[node])


def by_lane(
    graph: Graph, feed: Callable[[Any], Mapping[int, Feeder]]
) -> Callable[[Sequence[Any]], dict[int, Feeder]]:
    """Return what feeds lanes.

    Args:
        graph: The graph of a step.
        feed: What feeds its replicas.
    """

    def feed_lanes(inputs: Sequence[Any]) -> dict[int, Feeder]:
        lanes: dict[int, list[Feeder]] = {}
        for replica, feeder in feed(inputs).items():
            lane = graph.lanes[replica] if replica != SHARED else SHARED
            lanes.setdefault(lane, []).append(feeder)
        return {lane: partial(_feed_all, feeders) for lane, feeders in lanes.items()}

    return feed_lanes


def _feed_all(feeders: Sequence[Feeder], step: int) -> None:
    for feeder in feeders:
        feeder(step)
