"""In which order a program's kernels run on streams, and which of them run side by side.

Replicas are side by side, a stream each, between the places where they meet.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import numpy as np

from mirrored.backends import Backend
from mirrored.ops.spec import TensorSpec
from mirrored.program.graph import Graph, Node, Value
from mirrored.program.schedule import Guard, Joint, Phase, Region, Schedule, levels, split_at_guard
from mirrored.program.streamed.chains import group, is_between

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
        sides = [_tracks(lanes[lane], late) for lane in sorted(lanes)]
        # A lane that goes to another device and back meets the others there.
        for tracks in zip_longest(*sides):
            _add_stage(schedule, [track for track in tracks if track is not None])
        for track in _tracks(joint, late):
            _add_stage(schedule, [track])


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
