"""Finds the parts of a program that can run concurrently, on the host and on streams.

The host has a thread a replica, and cuts vectors for all of them where they have met. Devices with
streams run replicas side by side too, and what replicas of several cards share; a lone replica with
small products takes two streams.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from mirrored.backends.stream_backend import is_offloaded
from mirrored.program.dataflow import SHARED, Graph, Node, is_between
from mirrored.program.kernel_fusion import cut, group
from mirrored.program.schedule import FusedGroup, Kernels, Launch, Stage, in_levels, needed_nodes

if TYPE_CHECKING:  # Most machines never need it.
    from mirrored.program.kernel_fusion import Readers


# Whose replica 0's second stream is, and whose what all replicas share is where it has something
# beside it; no replicas have such numbers.
SIDE, BESIDE = -100, -98

# Additions and multiplications of a product that leaves room on a card for another kernel.
_SHORT = 1 << 30


class Threads:
    """Replicas run side by side on threads of the host; see `schedule.Overlap`."""

    replicas_first = True

    def replicas(self, by_replica: Mapping[int, list[Node]], *, branches: bool) -> Iterable[Stage]:
        """Yield what replicas do as one stage."""
        stage = [
            Launch(by_replica[replica][0].device.backend, [Kernels(by_replica[replica])], replica)
            for replica in sorted(by_replica)
            if by_replica[replica]
        ]
        return [stage] if stage else []

    def shared(self, nodes: list[Node], *, branches: bool) -> Iterable[Stage]:
        """Yield what one thread does, and fused groups, of which each does a part."""
        for phase in cut(nodes):
            yield [Launch(phase.nodes[0].device.backend, [phase])]


class Streams:
    """What is on several streams runs side by side; see `schedule.Overlap`.

    Args:
        graph: What is to be run.
    """

    replicas_first = False  # All-reduces start as soon as what they sum is there.

    def __init__(self, graph: Graph) -> None:
        from mirrored.program.kernel_fusion import Readers

        self._readers = Readers(graph, needed_nodes(graph))

    def replicas(self, by_replica: Mapping[int, list[Node]], *, branches: bool) -> Iterable[Stage]:
        """Yield what replicas do, a stream each."""
        if branches and len(by_replica) == 1:
            ((replica, nodes),) = by_replica.items()
            if _may_branch(nodes):
                yield from _branches(nodes, replica, self._readers)
                return
        # A replica that goes to another device and back meets the others there.
        sides = [_launches(by_replica[key], key, self._readers) for key in sorted(by_replica)]
        for side_by_side in zip_longest(*sides):
            yield [launch for launch in side_by_side if launch is not None]

    def shared(self, nodes: list[Node], *, branches: bool) -> Iterable[Stage]:
        """Yield what belongs to no replica: on several cards side by side, copies one by one."""
        if branches and _may_branch(nodes):
            yield from _branches(nodes, SHARED, self._readers)
            return
        for level in in_levels(nodes, _where):
            members: dict[tuple[object, bool], list[Node]] = {}
            for node in level:
                members.setdefault(_where(node), []).append(node)
            launches = [
                work
                for group in members.values()
                for work in _launches(group, SHARED, self._readers)
            ]
            compute = [launch for launch in launches if not launch.between]
            if compute:
                yield compute
            for launch in launches:
                if launch.between:
                    yield [launch]


def _launches(nodes: Iterable[Node], replica: int, readers: "Readers") -> list[Launch]:
    """Return nodes as launches: a new one wherever the memory changes."""
    launches = []
    for (_, between), phases in groupby(
        group(nodes, readers), key=lambda launch: _where(launch.nodes[0])
    ):
        members = list(phases)
        backend = members[0].nodes[0].device.backend
        launches.append(Launch(backend, [*members], replica, between))
    return launches


def _where(node: Node) -> tuple[object, bool]:
    """Return the memory that a node works on, and whether it is a copy or the host's work."""
    backend = node.device.backend
    return backend.memory, not is_offloaded(backend) or is_between(node)


# ------------------------------------------------------------------ two streams of one device


def _may_branch(nodes: list[Node]) -> bool:
    """Return whether nodes of one replica may run on two streams of a device.

    Their products are small: a large one fills a card, and another one beside it takes as long as
    behind it.
    """
    if len({node.device for node in nodes}) != 1 or not nodes[0].device.backend.streamed:
        return False
    if any(is_between(node) for node in nodes):
        return False
    return max(node.flops for node in nodes) <= _SHORT


def _branches(nodes: list[Node], replica: int, readers: "Readers") -> Iterator[Stage]:
    """Yield nodes of one replica on two streams of its device.

    Of what is ready, that with the longest way ahead goes first, and the next beside it (Graham,
    "Bounds on multiprocessing timing anomalies", 1969). The two wait for each other only where
    one needs what the other has computed since they last did.
    """
    phases = group(nodes, readers)
    needs = _needs(phases)
    ahead = _ways_ahead(needs)
    waiting, done = list(range(len(phases))), set[int]()
    here: list[int] = []
    beside: list[int] = []
    while waiting:
        ready = sorted((i for i in waiting if needs[i] <= done), key=lambda i: -ahead[i])[:2]
        first, *second = ready
        if second and needs[first] & {*beside} and not needs[first] & {*here}:
            first, second = second[0], [first]  # Each goes on behind what it needs.
        if needs[first] & {*beside} or any(needs[i] & {*here} for i in second):
            yield _pair([phases[i] for i in here], [phases[i] for i in beside], replica)
            here, beside = [], []
        here.append(first)
        beside += second
        done |= {*ready}
        waiting = [i for i in waiting if i not in done]
    yield _pair([phases[i] for i in here], [phases[i] for i in beside], replica)


def _pair(
    here: list[Kernels | FusedGroup], beside: list[Kernels | FusedGroup], replica: int
) -> list[Launch]:
    """Return a stage of a device's own stream and, where there is work for it, another one."""
    backend = here[0].nodes[0].device.backend
    if not is_offloaded(backend):
        raise ValueError("Only devices with streams have two of them.")
    if not beside:
        return [Launch(backend, [*here], replica)]
    # What all replicas share takes a replica's memory where it runs alone, and not here.
    own = BESIDE if replica == SHARED else replica
    return [Launch(backend, [*here], own), Launch(backend.beside, [*beside], SIDE - replica)]


def _needs(phases: Sequence[Kernels | FusedGroup]) -> list[set[int]]:
    """Return, for each phase, the numbers of those whose results it reads."""
    place = {node: i for i, phase in enumerate(phases) for node in phase.nodes}
    return [
        {
            place[value.node]
            for node in phase.nodes
            for value in node.inputs
            if value.node in place and place[value.node] != i
        }
        for i, phase in enumerate(phases)
    ]


def _ways_ahead(needs: Sequence[set[int]]) -> list[int]:
    """Return, for each phase, how many come after it at least, one after the other."""
    ahead = [0] * len(needs)
    for i in range(len(needs) - 1, -1, -1):  # What a phase needs stands before it.
        for before in needs[i]:
            ahead[before] = max(ahead[before], ahead[i] + 1)
    return ahead
