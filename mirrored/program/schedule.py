"""The order in which a graph's nodes run, and which of them run concurrently.

Replicas run side by side between the places where they meet; sums between devices, or between
hosts, beside all that comes behind them, until something needs them: what replicas compute is cut
where a sum can begin, so that nothing else stands before it. What else may overlap depends on what
runs a program, and is a parameter: see `concurrency`.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple, Protocol

from mirrored.backends import Backend
from mirrored.program.dataflow import SHARED, Collective, Graph, Node, Value, ancestors, joins_rows


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


@dataclass(eq=False, slots=True)
class Kernels:
    """Nodes that are computed one after the other, or all of them by one kernel.

    Attributes:
        nodes: The nodes, in order.
        together: Whether it is one kernel.
    """

    nodes: list[Node]
    together: bool = False


@dataclass(eq=False, slots=True)
class FusedGroup:
    """Elementwise nodes on as many elements, none of which waits for all of another's result.

    Attributes:
        nodes: The nodes, in order.
        size: The number of elements.
    """

    nodes: list[Node]
    size: int


@dataclass(eq=False, slots=True)
class Guard:
    """Where the program stops, with nothing written, unless these values are finite."""

    values: list[Value]


Phase = Kernels | FusedGroup | Guard


@dataclass(eq=False, slots=True)
class Launch:
    """Phases that a thread or a stream runs one after the other.

    Attributes:
        backend: The one that runs them, on its stream if it has any.
        phases: The phases.
        replica: Whose they are: a replica's, SHARED, or of a second stream (see `overlap`).
        between: Whether they are copies from another memory, or the host's work.
        collective: The all-reduce that they are, on streams of its own.
        meets: Whether they wait for what others were asked for before.
        waits: For how many of the program's all-reduces, counted from the first, they wait.
    """

    backend: Backend
    phases: list[Phase]
    replica: int = SHARED
    between: bool = False
    collective: Collective | None = None
    meets: bool = True
    waits: int = 0

    def nodes(self) -> list[Node]:
        """Return its nodes, in order."""
        return [node for phase in self.phases for node in nodes_of(phase)]


# Launches that run side by side.
Stage = list[Launch]


@dataclass(eq=False, slots=True)
class Schedule:
    """In which order a program runs.

    Attributes:
        stages: Its launches, in order; those of one stage run side by side.
        beside: Phases that run side by side, one or several behind one another on each side; those
            that are in none of these groups run alone.
        running: For each all-reduce, which runs beside all that comes behind it, the phase before
            which it is done; None: that is the end.
    """

    stages: list[Stage] = field(default_factory=list)
    beside: list[list[Phase]] = field(default_factory=list)
    running: list[tuple[Collective, Phase | None]] = field(default_factory=list)

    def launches(self) -> Iterator[Launch]:
        """Yield all launches; those that run side by side one after the other."""
        for stage in self.stages:
            yield from stage

    def phases(self) -> Iterator[Phase]:
        """Yield the phases of all launches."""
        for launch in self.launches():
            yield from launch.phases

    def nodes(self) -> list[Node]:
        """Return the nodes of all launches."""
        return [node for launch in self.launches() for node in launch.nodes()]

    def add(self, stage: Stage) -> None:
        """Add launches that run side by side."""
        self.stages.append(stage)
        if len(stage) > 1:
            self.beside.append([phase for launch in stage for phase in launch.phases])


class Overlap(Protocol):
    """What of a program may run side by side, and which of its nodes are computed together.

    With `branches`, nodes that run alone may be put on two sides. With `replicas_first`, what is
    shared and waits for nothing comes behind the replicas, and takes no memory while they run.
    """

    replicas_first: bool

    def replicas(self, by_replica: Mapping[int, list[Node]], *, branches: bool) -> Iterable[Stage]:
        """Yield what replicas do, none of which depends on another's."""

    def shared(self, nodes: list[Node], *, branches: bool) -> Iterable[Stage]:
        """Yield what is done where replicas have met."""


def nodes_of(phase: Phase) -> Sequence[Node]:
    """Return the nodes of a phase."""
    return () if isinstance(phase, Guard) else phase.nodes


def make_schedule(graph: Graph, overlap: Overlap) -> Schedule:
    """Return the order in which to run what a graph's results depend on."""
    schedule = Schedule()
    early, late = split_at_guard(graph)
    _add_levels(schedule, early, graph.collectives, overlap)
    place = len(schedule.stages)
    _add_levels(schedule, late, graph.collectives, overlap)
    if graph.guard_device is not None:
        _insert_guard(schedule, place, Launch(graph.guard_device.backend, [Guard(graph.guards)]))
    _let_wait(schedule)
    return schedule


def split_at_writes(
    stages: Sequence[Stage], in_place: Container[Value]
) -> tuple[list[Stage], list[Stage]]:
    """Return what is done before variables are written, and what is done from then on.

    Args:
        stages: What is done.
        in_place: The values that are computed in a variable's memory.
    """
    for number, stage in enumerate(stages):
        before, behind = [], []
        for launch in stage:
            written = [any(node.output in in_place for node in nodes_of(p)) for p in launch.phases]
            first = written.index(True) if True in written else len(written)
            before.append(replace(launch, phases=launch.phases[:first]))
            behind.append(replace(launch, phases=launch.phases[first:]))
        halves = [[launch for launch in half if launch.phases] for half in (before, behind)]
        if halves[1]:
            return [*stages[:number], *filter(None, halves[:1])], [halves[1], *stages[number + 1 :]]
    return [*stages], []


# ------------------------------------------------------------------ what runs before what


def split_at_guard(graph: Graph) -> tuple[list[Node], list[Node]]:
    """Return the nodes that results depend on: those before the guard, and those behind it."""
    needed = needed_nodes(graph)
    # So is what an all-reduce sums before an update has begun: it starts as early as it can.
    started = [node.output for work in graph.collectives for node in work.nodes if not node.updates]
    guarded = ancestors([*graph.guards, *started])
    for collective in reversed(graph.collectives):
        if not guarded.isdisjoint(collective.nodes):  # They run as one.
            guarded |= ancestors(node.output for node in collective.nodes)
    late: set[Node] = set()
    for node in needed:
        # What joins the replicas' gradients waits for the update that uses it: one pass does both.
        waits = node not in guarded and (node.updates or bool(graph.guards))
        if (waits and node.replica == SHARED) or not late.isdisjoint(node.before()):
            late.add(node)
    return [node for node in needed if node not in late], [node for node in needed if node in late]


def needed_nodes(graph: Graph) -> list[Node]:
    """Return the nodes that outputs, writes and guards depend on, in the order of recording.

    Random ones are needed in any case, since a draw that nobody reads moves its stream on, and so
    are those that check values or tell of them.
    """
    results = [*graph.outputs, *graph.guards, *(value for _, value in graph.writes)]
    wanted = ancestors(
        [*results, *(node.output for node in graph.nodes if node.op.random or node.op.stateful)]
    )
    for collective in graph.collectives:
        if collective.connection.peers is not None:  # Other processes wait for this one.
            wanted |= ancestors(node.output for node in collective.nodes)
        elif not wanted.isdisjoint(collective.nodes):
            wanted.update(collective.nodes)  # All ranks take part, read or not.
    return [node for node in graph.nodes if node in wanted]


def in_levels(nodes: list[Node], side: Callable[[Node], object]) -> list[list[Node]]:
    """Return nodes in levels, each of what depends on nothing of another side in it."""
    level: dict[Node, int] = {}
    for node in nodes:
        own, deepest = side(node), 0
        for past in node.before():
            if past in level:
                deepest = max(deepest, level[past] + (side(past) != own))
        level[node] = deepest
    count = max(level.values(), default=-1) + 1
    return [[node for node in nodes if level[node] == number] for number in range(count)]


def _levels(nodes: list[Node]) -> Iterator[tuple[dict[int, list[Node]], list[Node]]]:
    """Yield what replicas do side by side, by replica, and what is done where they then meet."""
    for level in in_levels(nodes, lambda node: node.replica):
        by_replica: dict[int, list[Node]] = {}
        for node in level:
            if node.replica != SHARED:
                by_replica.setdefault(node.replica, []).append(node)
        yield by_replica, [node for node in level if node.replica == SHARED]


def _add_levels(
    schedule: Schedule, nodes: list[Node], collectives: Sequence[Collective], overlap: Overlap
) -> None:
    levels = list(_levels(nodes))
    started: set[Node] = set()
    for (by_replica, shared), (_, ahead) in zip_longest(levels, levels[1:], fillvalue=({}, [])):
        left = [node for node in shared if node not in started]
        if not overlap.replicas_first:
            _add_shared(schedule, left, collectives, overlap)
        launched = [launch.collective for launch in schedule.launches() if launch.collective]
        done = {node for collective in launched for node in collective.nodes}
        starts = find_starts(by_replica, ahead, collectives, done)
        if not starts and overlap.replicas_first:
            starts = find_early(by_replica, [*left, *ahead])
        if starts:
            _add_overlapped(schedule, by_replica, starts, overlap)
            started |= {node for start in starts for node in start.nodes()}
            left = [node for node in left if node not in started]
        else:
            for stage in overlap.replicas(by_replica, branches=True):
                schedule.add(stage)
        if overlap.replicas_first:
            _add_shared(schedule, left, collectives, overlap)


def _add_shared(
    schedule: Schedule, nodes: list[Node], collectives: Sequence[Collective], overlap: Overlap
) -> None:
    for part in in_order(nodes, collectives):
        if isinstance(part, Collective):
            _add_collective(schedule, part)
            continue
        for stage in overlap.shared(part, branches=True):
            schedule.add(stage)


# ------------------------------------------------------------------ all-reduces


def _add_collective(schedule: Schedule, collective: Collective) -> None:
    streams = collective.connection.streams
    phase = Kernels(list(collective.nodes))
    schedule.add([Launch(streams[0], [phase], collective=collective)])


def _add_overlapped(
    schedule: Schedule, by_replica: dict[int, list[Node]], starts: Sequence[Start], overlap: Overlap
) -> None:
    """Add what replicas do with sums that start in the midst of it."""
    left = {replica: list(nodes) for replica, nodes in by_replica.items()}
    added: list[Phase] = []
    ahead: set[Backend] = set()
    for start in starts:
        new = {node for nodes in start.by_replica.values() for node in nodes}
        left = {
            replica: [node for node in nodes if node not in new] for replica, nodes in left.items()
        }
        ahead = _add_parts(
            schedule, overlap.replicas(start.by_replica, branches=False), ahead, added
        )
        if start.shared:
            for stage in overlap.shared(start.shared, branches=False):
                schedule.add(stage)
            ahead = set()
        if start.collective is not None:
            _add_collective(schedule, start.collective)
    _add_parts(schedule, overlap.replicas(left, branches=False), ahead, added)
    # Replicas need not wait for each other in between.
    schedule.beside.append(added)


def _add_parts(
    schedule: Schedule, parts: Iterable[Stage], ahead: set[Backend], added: list[Phase]
) -> set[Backend]:
    """Add a part of each replica, and its phases to a list; return the streams that it is on."""
    stages = list(parts)
    used = {launch.backend for stage in stages for launch in stage}
    # Replicas that go on where they were have nothing to wait for.
    meets = len(stages) != 1 or not used <= ahead
    for stage in stages:
        for launch in stage:
            launch.meets = meets
            added += launch.phases
        schedule.add(stage)
    return used | (set() if meets else ahead)


def _insert_guard(schedule: Schedule, place: int, guard: Launch) -> None:
    """Insert the guard at a place or, where there are all-reduces behind it, behind the last.

    Whether a step writes is decided once, when all sums are there on all devices.
    """
    sums = [i for i, stage in enumerate(schedule.stages) if stage[0].collective is not None]
    schedule.stages.insert(max([place, *(i + 1 for i in sums)]), [guard])


def _let_wait(schedule: Schedule) -> None:
    """Note which stages wait for which all-reduces: for those whose sums they read."""
    number: dict[Node, int] = {}
    running: list[Collective] = []
    count = 0
    for stage in schedule.stages:
        phases = [phase for launch in stage for phase in launch.phases]
        nodes = [node for phase in phases for node in nodes_of(phase)] if number else []
        read = [value.node for node in nodes for value in node.inputs]
        waits = max((number[node] for node in read if node in number), default=0)
        if isinstance(phases[0], Guard):
            waits = count  # For all: nobody writes before all sums are there.
        for launch in stage:
            launch.waits = waits
        collective = stage[0].collective
        if collective is not None:
            count += 1
            number |= dict.fromkeys(collective.nodes, count)
            running.append(collective)
            continue
        done = [work for work in running if number[work.nodes[0]] <= waits]
        schedule.running += [(work, phases[0]) for work in done]
        running = [work for work in running if work not in done]
    schedule.running += [(work, None) for work in running]
