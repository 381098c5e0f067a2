"""In which order a program's kernels run on streams, and which of them run side by side.

Replicas are side by side, a stream each, between the places where they meet; all-reduces between
cards run beside what comes behind them, until something needs their sums.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import numpy as np

from mirrored.backends import Backend
from mirrored.backends.stream_backend import is_streamed
from mirrored.ops.spec import TensorSpec
from mirrored.program.executors import product_operations
from mirrored.program.graph import JOINT, Collective, Graph, Node, Value, is_between
from mirrored.program.schedule import (
    Guard,
    Joint,
    Launch,
    Phase,
    Region,
    Schedule,
    levels,
    nodes_of,
    split_at_guard,
)
from mirrored.program.streamed.chains import group
from mirrored.program.streamed.overlap import Start, find_starts, in_order

# The lane of replica 0's second stream, and that of what belongs to no replica and has something
# beside it; no other lanes have such numbers.
SIDE, BESIDE = -100, -98

# Additions and multiplications of a product that leaves room on a card for another kernel.
_SHORT = 1 << 30

_COUNTER = TensorSpec((3,), np.dtype(np.uint64))


@dataclass(eq=False, slots=True)
class StreamedSchedule(Schedule):
    """The schedule of a streamed program.

    Attributes:
        stages: The launches, in order; those of one stage run side by side.
        counters: For each random node what it reads key and number of its draw from.
    """

    stages: list[list[Launch]] = field(default_factory=list)
    counters: dict[Node, Value] = field(default_factory=dict)


def make_stages(graph: Graph) -> StreamedSchedule:
    """Return the order in which to run what a graph's results depend on."""
    schedule = StreamedSchedule()
    early, late = split_at_guard(graph)
    _add_levels(schedule, early, graph.collectives)
    place = len(schedule.stages)
    _add_levels(schedule, late, graph.collectives)
    if graph.gate is not None:
        _insert_guard(schedule, place, Launch(graph.gate.backend, [Guard(graph.guards)]))
    _let_wait(schedule)
    for node in (*early, *late):
        if node.op.random:
            schedule.counters[node] = Value(_COUNTER, node.device, node.lane)
    return schedule


def _insert_guard(schedule: StreamedSchedule, place: int, guard: Launch) -> None:
    """Insert the guard at a place or, where there are all-reduces behind it, behind the last.

    Whether a step writes is decided once, when all sums are there on all devices.
    """
    stages = schedule.stages
    sums = [i for i, launches in enumerate(stages) if launches[0].collective is not None]
    stages.insert(max([place, *(i + 1 for i in sums)]), [guard])
    schedule.phases = [
        phase for launches in stages for launch in launches for phase in launch.phases
    ]


def _add_levels(
    schedule: StreamedSchedule, nodes: list[Node], collectives: Sequence[Collective]
) -> None:
    found = list(levels(nodes))
    started: set[Node] = set()
    for (lanes, joint), (_, ahead) in zip_longest(found, found[1:], fillvalue=({}, [])):
        _add_joint(schedule, [n for n in joint if n not in started], collectives)
        starts = find_starts(lanes, ahead, collectives)
        if starts:
            _add_overlapped(schedule, lanes, starts)
            started |= {node for each in starts for node in (*each.joint, *each.collective.nodes)}
        elif len(lanes) == 1 and _may_branch(*lanes.values()):
            for members in lanes.values():
                _add_branches(schedule, members)
        else:
            for launches in _sides(lanes):
                _add_stage(schedule, launches)


def _sides(lanes: Mapping[int, list[Node]]) -> Iterable[list[Launch]]:
    """Yield what lanes do side by side, stage by stage."""
    sides = [_launches(lanes[lane]) for lane in sorted(lanes)]
    # A lane that goes to another device and back meets the others there.
    for launches in zip_longest(*sides):
        yield [launch for launch in launches if launch is not None]


def _add_overlapped(
    schedule: StreamedSchedule, lanes: dict[int, list[Node]], starts: Sequence[Start]
) -> None:
    """Add lanes with all-reduces that start in the midst of them."""
    left = {lane: list(nodes) for lane, nodes in lanes.items()}
    added: list[Phase] = []
    ahead: set[Backend] = set()
    for start in starts:
        new = {node for nodes in start.lanes.values() for node in nodes}
        left = {lane: [node for node in nodes if node not in new] for lane, nodes in left.items()}
        ahead = _add_sides(schedule, start.lanes, ahead, added)
        if start.joint:
            _add_side_by_side(schedule, start.joint)
            ahead = set()
        _add_collective(schedule, start.collective)
    _add_sides(schedule, left, ahead, added)
    # Replicas need not wait for each other in between.
    schedule.beside.append(added)


def _add_sides(
    schedule: StreamedSchedule,
    lanes: Mapping[int, list[Node]],
    ahead: set[Backend],
    added: list[Phase],
) -> set[Backend]:
    """Add a part of each lane, and its phases to a list; return the streams that it is on.

    Args:
        schedule: What they are added to.
        lanes: The parts.
        ahead: The streams of the parts before, where nothing else came between.
        added: The list.
    """
    stages = list(_sides(lanes))
    used = {launch.backend for launches in stages for launch in launches}
    # Lanes that go on where they were have nothing to wait for.
    meets = len(stages) != 1 or not used <= ahead
    for launches in stages:
        for launch in launches:
            launch.meets = meets
            added += launch.phases
        _add_stage(schedule, launches)
    return used | (set() if meets else ahead)


def _add_collective(schedule: StreamedSchedule, collective: Collective) -> None:
    streams = collective.connection.streams
    phase = Joint(list(collective.nodes))
    _add_stage(schedule, [Launch(streams[0], [phase], False, collective)])


def _add_joint(
    schedule: StreamedSchedule, nodes: list[Node], collectives: Sequence[Collective]
) -> None:
    """Add nodes of no replica, with the all-reduces among them."""
    for part in in_order(nodes, collectives):
        if isinstance(part, Collective):
            _add_collective(schedule, part)
        elif _may_branch(part):
            _add_branches(schedule, part)
        else:
            _add_side_by_side(schedule, part)


def _add_side_by_side(schedule: StreamedSchedule, nodes: list[Node]) -> None:
    """Add nodes of no replica: those of several cards side by side, copies one by one."""
    level: dict[Node, int] = {}
    for node in nodes:
        before = [value.node for value in node.inputs if value.node in level]
        level[node] = max((level[n] + (_where(n) != _where(node)) for n in before), default=0)
    for number in range(max(level.values()) + 1):
        members: dict[tuple[object, bool], list[Node]] = {}
        for node in nodes:
            if level[node] == number:
                members.setdefault(_where(node), []).append(node)
        launches = [launch for each in members.values() for launch in _launches(each)]
        compute = [launch for launch in launches if not launch.between]
        if compute:
            _add_stage(schedule, compute)
        for launch in launches:
            if launch.between:
                _add_stage(schedule, [launch])


def _let_wait(schedule: StreamedSchedule) -> None:
    """Note which stages wait for which all-reduces: for those whose sums they read."""
    number: dict[Node, int] = {}
    running: list[Collective] = []
    count = 0
    for launches in schedule.stages:
        phases = [phase for launch in launches for phase in launch.phases]
        read = [value for phase in phases for value in _read_by(phase)]
        waits = max((number[value.node] for value in read if value.node in number), default=0)
        if isinstance(phases[0], Guard):
            waits = count
        for launch in launches:
            launch.waits = waits
        collective = launches[0].collective
        if collective is not None:
            count += 1
            number |= dict.fromkeys(collective.nodes, count)
            running.append(collective)
            continue
        done = [each for each in running if number[each.nodes[0]] <= waits]
        schedule.running += [(each, phases[0]) for each in done]
        running = [each for each in running if each not in done]
    schedule.running += [(each, None) for each in running]


def _read_by(phase: Phase) -> Iterable[Value]:
    if isinstance(phase, Guard):
        return phase.values
    return [value for node in nodes_of(phase) for value in node.inputs]


def _may_branch(nodes: list[Node]) -> bool:
    """Return whether nodes of one lane may run on two streams: on one device, with small products.

    One large product fills a card: another one beside it takes as long as behind it.
    """
    if len({node.device for node in nodes}) != 1 or not is_streamed(nodes[0].device.backend):
        return False
    if any(is_between(node) for node in nodes):
        return False
    return max(map(product_operations, nodes)) <= _SHORT


def _add_branches(schedule: StreamedSchedule, nodes: list[Node]) -> None:
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
            _add_pair(schedule, [phases[i] for i in here], [phases[i] for i in beside])
            here, beside = [], []
        here.append(first)
        beside += second
        done |= {*ready}
        waiting = [i for i in waiting if i not in done]
    _add_pair(schedule, [phases[i] for i in here], [phases[i] for i in beside])


def _add_pair(
    schedule: StreamedSchedule,
    here: list[Joint | Region],
    beside: list[Joint | Region],
) -> None:
    """Add a stage of a device's own stream and, where there is work for it, another one."""
    backend = here[0].nodes[0].device.backend
    if not is_streamed(backend):
        raise ValueError("Only what has streams has two of them.")
    launches = [Launch(backend, [*here])]
    if beside:
        schedule.lanes |= {node: SIDE - node.lane for phase in beside for node in phase.nodes}
        # Memory is shared with what is joint, for that runs alone.
        joint = [node for phase in here for node in phase.nodes if node.lane == JOINT]
        schedule.lanes |= dict.fromkeys(joint, BESIDE)
        launches.append(Launch(backend.beside, [*beside]))
    _add_stage(schedule, launches)


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


def _add_stage(schedule: StreamedSchedule, launches: list[Launch]) -> None:
    schedule.stages.append(launches)
    phases = [phase for launch in launches for phase in launch.phases]
    schedule.phases += phases
    if len(launches) > 1:
        schedule.beside.append(phases)


def _launches(nodes: Iterable[Node]) -> list[Launch]:
    """Return nodes as launches: a new one wherever the memory changes."""
    launches = []
    for (_, between), phases in groupby(group(nodes), key=_place):
        members = list(phases)
        backend = members[0].nodes[0].device.backend
        launches.append(Launch(backend, [*members], between))
    return launches


def _place(phase: Joint | Region) -> tuple[object, bool]:
    return _where(phase.nodes[0])


def _where(node: Node) -> tuple[object, bool]:
    """Return the memory that a node works on, and whether it is a copy or the host's work."""
    backend = node.device.backend
    return backend.memory, backend.host_readable or is_between(node)
