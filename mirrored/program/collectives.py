"""The earliest start of each all-reduce of a step: when its inputs have been computed.

What replicas compute is cut where a sum can begin, so that nothing else stands before it.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from mirrored.program.graph import Collective, Node, ancestors, joins_rows


class Start(NamedTuple):
    """What is done before a sum, and not before another one that starts earlier.

    Attributes:
        by_replica: What replicas compute, by replica.
        shared: What is computed where they then meet, such as sums of replicas of one card; what
            begins a sum on the host is the last of it.
        collective: The all-reduce between devices; None: it is a sum on the host.
    """

    by_replica: dict[int, list[Node]]
    shared: list[Node]
    collective: Collective | None = None

    def nodes(self) -> set[Node]:
        """Return what is shared, and what sums."""
        return {*self.shared, *(self.collective.nodes if self.collective else ())}


def find_starts(
    by_replica: Mapping[int, Sequence[Node]],
    shared: Sequence[Node],
    collectives: Iterable[Collective],
    done: Container[Node] = (),
) -> list[Start]:
    """Return the all-reduces that can start while replicas compute, in the order of doing so.

    Args:
        by_replica: What replicas compute side by side; it depends on nothing of the below.
        shared: What is computed where they then meet, the all-reduces among it.
        collectives: All all-reduces.
        done: The nodes of those that are asked for before.
    """
    members = set(shared)
    sums = {node for collective in collectives for node in collective.nodes}
    # How much of its replica's comes before each node.
    place = {node: i for nodes in by_replica.values() for i, node in enumerate(nodes)}
    starts: list[tuple[int, Collective, set[Node]]] = []
    starts_at: dict[Node, int] = {}
    for all_reduce in collectives:
        if not members.issuperset(all_reduce.nodes):
            continue
        after = all_reduce.after
        if not (after is None or after in done or after in starts_at):
            continue
        wanted = ancestors(all_reduce.sends(), members | place.keys())
        if not wanted & sums and not wanted.isdisjoint(place):
            ready = _ready(place, wanted)
            if after in starts_at:
                ready = max(ready, starts_at[after])
            starts_at |= dict.fromkeys(all_reduce.nodes, ready)
            starts.append((ready, all_reduce, wanted))
    starts.sort(key=lambda start: start[0])  # Those that are ready at once keep their order.
    return _cut(by_replica, shared, [(wanted, collective) for _, collective, wanted in starts])


def find_early(by_replica: Mapping[int, Sequence[Node]], shared: Sequence[Node]) -> list[Start]:
    """Return the sums on the host that can begin while replicas compute, as they were recorded.

    Args:
        by_replica: What replicas compute side by side.
        shared: What is computed where they meet, before and behind it, ops that begin sums too.
    """
    place = {node for nodes in by_replica.values() for node in nodes}
    within = place.union(shared)
    begun = [node for node in shared if node.op.early]
    wanted = [ancestors([node.output], within) for node in begun]
    # Each takes the one before, too.
    return _cut(by_replica, shared, [(nodes, None) for nodes in wanted if nodes & place])


def _cut(
    by_replica: Mapping[int, Sequence[Node]],
    shared: Sequence[Node],
    wanted: Iterable[tuple[set[Node], Collective | None]],
) -> list[Start]:
    """Return what is done before each of several sums, given what each of them depends on."""
    starts, done = [], set[Node]()
    for nodes, collective in wanted:
        new = nodes - done
        done |= new
        own = {i: [node for node in members if node in new] for i, members in by_replica.items()}
        starts.append(Start(own, [node for node in shared if node in new], collective))
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
    group = {node: collective for collective in collectives for node in collective.nodes}
    left, parts = list(shared), list[Collective | list[Node]]()
    while left:
        behind = {node for node in left if node in group}
        for node in left:
            if any(value.node in behind for value in node.inputs):
                behind.add(node)
        plain = [node for node in left if node not in behind]
        if plain:
            parts.append(plain)
        waiting = dict.fromkeys(group[node] for node in left if node in group)
        ready = [
            work
            for work in waiting
            if work.after not in behind and all(v.node not in behind for v in work.sends())
        ]
        parts += ready
        done = {node for collective in ready for node in collective.nodes}
        left = [node for node in left if node in behind - done]
    return parts
