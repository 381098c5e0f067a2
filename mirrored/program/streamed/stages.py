"""In which order a program's kernels run on streams, and which of them run side by side.

Replicas are side by side, a stream each, between the places where they meet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import numpy as np

from mirrored.backends import Backend
from mirrored.backends.streams import is_streamed
from mirrored.ops.spec import TensorSpec
from mirrored.program.executors import product_operations
from mirrored.program.graph import JOINT, Graph, Node, Value
from mirrored.program.schedule import (
    Guard,
    Joint,
    Phase,
    Region,
    Schedule,
    levels,
    split_at_guard,
)
from mirrored.program.streamed.chains import group, is_between

# The lane of replica 0's second stream, and that of what belongs to no replica and has something
# beside it; no other lanes have such numbers.
SIDE, BESIDE = -100, -98

# Additions and multiplications of a product that leaves room on a card for another kernel.
_SHORT = 1 << 30

_COUNTER = TensorSpec((3,), np.dtype(np.uint64))


@dataclass(eq=False, slots=True)
class Track:
    """Phases that run one after the other.

    Attributes:
        backend: The one on whose stream they run.
        phases: The phases.
        late: Whether they run behind the guard, and write nothing where it fails.
        between: Whether they are copies from another memory, or the host's work.
    """

    backend: Backend
    phases: list[Phase]
    late: bool
    between: bool


@dataclass(eq=False, slots=True)
class StreamedSchedule(Schedule):
    """The schedule of a streamed program.

    Attributes:
        stages: The tracks, in order; those of one stage run side by side.
        counters: For each random node what it reads key and number of its draw from.
    """

    stages: list[list[Track]] = field(default_factory=list)
    counters: dict[Node, Value] = field(default_factory=dict)


def make_stages(graph: Graph) -> StreamedSchedule:
    """Return the order in which to run what a graph's results depend on."""
    schedule = StreamedSchedule()
    early, late = split_at_guard(graph)
    _add_levels(schedule, early, late=False)
    if graph.guards:
        backend = graph.guards[0].device.backend
        _add_stage(schedule, [Track(backend, [Guard(graph.guards)], False, False)])
    _add_levels(schedule, late, late=True)
    for node in (*early, *late):
        if node.op.random:
            schedule.counters[node] = Value(_COUNTER, node.device, node.lane)
    return schedule


def _add_levels(schedule: StreamedSchedule, nodes: list[Node], *, late: bool) -> None:
    for lanes, joint in levels(nodes):
        if len(lanes) == 1 and _may_branch(*lanes.values()):
            for members in lanes.values():
                _add_branches(schedule, members, late)
        else:
            sides = [_tracks(lanes[lane], late) for lane in sorted(lanes)]
            # A lane that goes to another device and back meets the others there.
            for tracks in zip_longest(*sides):
                _add_stage(schedule, [track for track in tracks if track is not None])
        if _may_branch(joint):
            _add_branches(schedule, joint, late)
        else:
            for track in _tracks(joint, late):
                _add_stage(schedule, [track])


def _may_branch(nodes: list[Node]) -> bool:
    """Return whether nodes of one lane may run on two streams: on one device, with small products.

    One large product fills a card: another one beside it takes as long as behind it.
    """
    if len({node.device for node in nodes}) != 1 or not is_streamed(nodes[0].device.backend):
        return False
    if any(is_between(node) for node in nodes):
        return False
    return max(map(product_operations, nodes)) <= _SHORT


def _add_branches(schedule: StreamedSchedule, nodes: list[Node], late: bool) -> None:
    """Add nodes of one lane on two streams of its device.

    Of what is ready, that with the longest way ahead goes first, and the next beside it (Graham,
    "Bounds on multiprocessing timing anomalies", 1969). The two wait for each other only where
    one needs what the other has computed since they last did.
    """
    phases = group(nodes)
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
            _add_pair(schedule, [phases[i] for i in here], [phases[i] for i in beside], late)
            here, beside = [], []
        here.append(first)
        beside += second
        done |= {*ready}
        waiting = [i for i in waiting if i not in done]
    _add_pair(schedule, [phases[i] for i in here], [phases[i] for i in beside], late)


def _add_pair(
    schedule: StreamedSchedule,
    here: list[Joint | Region],
    beside: list[Joint | Region],
    late: bool,
) -> None:
    """Add a stage of a device's own stream and, where there is work for it, another one."""
    backend = here[0].nodes[0].device.backend
    if not is_streamed(backend):
        raise ValueError("Only what has streams has two of them.")
    tracks = [Track(backend, [*here], late, False)]
    if beside:
        schedule.lanes |= {node: SIDE - node.lane for phase in beside for node in phase.nodes}
        # Memory is shared with what is joint, for that runs alone.
        joint = [node for phase in here for node in phase.nodes if node.lane == JOINT]
        schedule.lanes |= dict.fromkeys(joint, BESIDE)
        tracks.append(Track(backend.beside, [*beside], late, False))
    _add_stage(schedule, tracks)


def _needs(phases: Sequence[Joint | Region]) -> list[set[int]]:
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


def _add_stage(schedule: StreamedSchedule, tracks: list[Track]) -> None:
    schedule.stages.append(tracks)
    phases = [phase for track in tracks for phase in track.phases]
    schedule.phases += phases
    if len(tracks) > 1:
        schedule.beside.append(phases)


def _tracks(nodes: Iterable[Node], late: bool) -> list[Track]:
    """Return nodes as tracks: a new one wherever the memory changes."""
    tracks = []
    for (_, between), phases in groupby(group(nodes), key=_place):
        members = list(phases)
        backend = members[0].nodes[0].device.backend
        tracks.append(Track(backend, [*members], late, between))
    return tracks


def _place(phase: Joint | Region) -> tuple[object, bool]:
    node = phase.nodes[0]
    backend = node.device.backend
    return backend.memory, backend.host_readable or is_between(node)
