"""In which order a program's kernels run on streams, and which of them run side by side.

Replicas are side by side, a stream each, between the places where they meet.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import numpy as np

from mirrored.backends import Backend
from mirrored.backends.streams import is_streamed
from mirrored.ops.spec import TensorSpec
from mirrored.program.executors import product_operations
from mirrored.program.graph import Graph, Node, Value, joins_rows
from mirrored.program.schedule import (
    Guard,
    Joint,
    Phase,
    Region,
    Schedule,
    levels,
    nodes_of,
    split_at_guard,
)
from mirrored.program.streamed.chains import ancestors_in, group, is_between, pairs

# The lane of the second branch of replica 0; no other lane has such a number.
SIDE = -100

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
        branches = _branches(list(lanes.values())[0]) if len(lanes) == 1 else None
        if branches is not None:
            _add_branches(schedule, *branches, late)
            lanes = {}
        sides = [_tracks(lanes[lane], late) for lane in sorted(lanes)]
        # A lane that goes to another device and back meets the others there.
        for tracks in zip_longest(*sides):
            _add_stage(schedule, [track for track in tracks if track is not None])
        for track in _tracks(joint, late):
            _add_stage(schedule, [track])


def _branches(nodes: list[Node]) -> tuple[list[Node], list[Node]] | None:
    """Return a lone replica's nodes as its longest path with all that leads there, and the rest.

    None where it is one branch, works on several memories, or has products so large that one of
    them fills a card.
    """
    if len({node.device for node in nodes}) > 1 or any(is_between(node) for node in nodes):
        return None
    if all(joins_rows(node.op, node.attrs) for node in nodes):
        return None
    if not is_streamed(nodes[0].device.backend) or max(map(product_operations, nodes)) > _SHORT:
        return None
    depth: dict[Node, int] = {}
    for node in nodes:
        made = [depth[value.node] for value in node.inputs if value.node in depth]
        depth[node] = 1 + max(made, default=0)
    # What only brings results together, as gradients into one vector, depends on all and does little.
    last = max((n for n in nodes if not joins_rows(n.op, n.attrs)), key=lambda n: depth[n])
    main = {last, *ancestors_in(last, nodes)}
    main |= {first for first, second in pairs(nodes).items() if second in main}
    rest = [node for node in nodes if node not in main]
    return ([node for node in nodes if node in main], rest) if rest else None


def _add_branches(
    schedule: StreamedSchedule, main: list[Node], rest: list[Node], late: bool
) -> None:
    """Add two branches of one replica, the second beside the first as soon as it can run."""
    backend = main[0].device.backend
    if not is_streamed(backend):
        raise ValueError("Branches are for devices that have streams.")
    side = SIDE - main[0].lane
    ahead, waiting = list(group(main)), list(group(rest))
    done: set[Node] = set()
    among = {*main, *rest}

    def is_ready(phase: Phase) -> bool:
        read = {value.node for node in nodes_of(phase) for value in node.inputs}
        return not (read & among) - done - set(nodes_of(phase))

    while ahead or waiting:
        beside: list[Phase] = []
        for phase in list(waiting):
            if is_ready(phase):
                beside.append(phase)
                waiting.remove(phase)
        # As many as there are beside them; where there are none, up to where there will be some.
        here: list[Phase] = [*ahead[: max(len(beside), 1)]]
        del ahead[: len(here)]
        if not ahead:  # Nothing of the longer branch is left: both share what there is.
            share = max(0, len(beside) - len(here)) // 2
            here, beside = [*here, *beside[:share]], beside[share:]
        schedule.lanes |= {node: side for phase in beside for node in nodes_of(phase)}
        tracks = [Track(backend, list(here), late, False)] if here else []
        if beside:
            tracks.append(Track(backend.beside, beside, late, False))
        _add_stage(schedule, tracks)
        done |= {node for phase in (*here, *beside) for node in nodes_of(phase)}


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
        backend = _nodes(members[0])[0].device.backend
        tracks.append(Track(backend, list(members), late, between))
    return tracks


def _place(phase: Joint | Region) -> tuple[object, bool]:
    node = _nodes(phase)[0]
    backend = node.device.backend
    return backend.memory, backend.host_readable or is_between(node)


def _nodes(phase: Joint | Region) -> list[Node]:
    return phase.nodes
