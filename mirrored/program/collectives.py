"""When each all-reduce of a step may start: as soon as what it sums is there, beside the rest.

What replicas compute is cut where an all-reduce can begin, so that nothing else stands before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mirrored.program.graph import Collective, Node, ancestors, joins_rows


class Start(NamedTuple):
    """What is done before an all-reduce, and not before another one that starts earlier.

    Attributes:
        collective: The all-reduce.
        by_replica: What replicas compute, by replica.
        shared: What is computed where they then meet, such as sums of replicas of one card.
    """

    collective: Collective
    by_replica: dict[int, list[Node]]
    shared: list[Node]


def find_starts(
    by_replica: Mapping[int, Sequence[Node]],
    shared: Sequence[Node],
    collectives: Iterable[Collective],
) -> list[Start]:
    """Return the all-reduces that can start while replicas compute, in the order of doing so.

    Args:
        by_replica: What replicas compute side by side; it depends on nothing of the below.
        shared: What is computed where they then meet, the all-reduces among it.
        collectives: All all-reduces.
    """
    members = set(shared)
    sums = {node for each in collectives for node in each.nodes}
    # How much of its replica's comes before each node.
    place = {node: i for nodes in by_replica.values() for i, node in enumerate(nodes)}
    found: list[tuple[int, Collective, set[Node]]] = []
    for each in collectives:
        if not members.issuperset(each.nodes):
            continue
        wanted = ancestors(each.sends(), members | place.keys())
        if not wanted & sums and not wanted.isdisjoint(place):
            found.append((_ready(place, wanted), each, wanted))
    found.sort(key=lambda start: start[0])  # Those that are ready at once keep their order.
    starts, done = [], set[Node]()
    for _, collective, wanted in found:
        new = wanted - done
        done |= new
        starts.append(
            Start(
                collective,
                {
                    replica: [node for node in nodes if node in new]
                    for replica, nodes in by_replica.items()
                },
                [node for node in shared if node in new],
            )
        )
    return starts


def _ready(place: Mapping[Node, int], wanted: Iterable[Node]) -> int:
    """Return how much of any replica's comes before all of some nodes are ready.

    What only joins others was recorded late, and can be done when the last of those is.
    """
    return max(
        (place[node] for node in wanted if node in place and not joins_rows(node.op, node.attrs)),
        default=0,
    )


def in_order(
    shared: Sequence[Node], collectives: Iterable[Collective]
) -> list[Collective | list[Node]]:
    """Return nodes of no replica, and all-reduces among them, in an order that they can have."""
    group = {node: each for each in collectives for node in each.nodes}
    left, parts = list(shared), list[Collective | list[Node]]()
    while left:
        behind = {node for node in left if node in group}
        for node in left:
            if any(value.node in behind for value in node.inputs):
                behind.add(node)
        plain = [node for node in left if node not in behind]
        if plain:
            parts.append(plain)
        found = dict.fromkeys(group[node] for node in left if node in group)
        ready = [each for each in found if all(v.node not in behind for v in each.sends())]
        parts += ready
        done = {node for each in ready for node in each.nodes}
        left = [node for node in left if node in behind - done]
    return parts
