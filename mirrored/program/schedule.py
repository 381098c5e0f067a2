"""In which order a graph's nodes run, and which of them may run side by side.

Replicas run side by side between the places where they meet; elementwise work on whole vectors
after such a place is cut into shards for all threads.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mirrored.backends import Backend
from mirrored.program.graph import JOINT, Collective, Graph, Node, Value


@dataclass(eq=False, slots=True)
class Lanes:
    """Nodes that replicas run side by side: a list for each."""

    nodes: dict[int, list[Node]]


@dataclass(eq=False, slots=True)
class Joint:
    """Nodes that one thread runs while the others wait."""

    nodes: list[Node]


@dataclass(eq=False, slots=True)
class Guard:
    """Where the program stops, with nothing written, unless these values are finite."""

    values: list[Value]


@dataclass(eq=False, slots=True)
class Region:
    """Elementwise nodes on vectors of one length, run piece by piece.

    Attributes:
        nodes: The nodes, in order.
        size: The length of the vectors.
    """

    nodes: list[Node]
    size: int


Phase = Lanes | Joint | Guard | Region


@dataclass(eq=False, slots=True)
class Launch:
    """Phases that a stream runs one after the other.

    Attributes:
        backend: The one on whose stream they run.
        phases: The phases.
        between: Whether they are copies from another memory, or the host's work.
        collective: The all-reduce that they are, on streams of its own.
        meets: Whether they wait for what other streams were asked for before.
        waits: For how many of the program's all-reduces, counted from the first, they wait.
    """

    backend: Backend
    phases: list[Phase]
    between: bool = False
    collective: Collective | None = None
    meets: bool = True
    waits: int = 0


@dataclass(eq=False, slots=True)
class Schedule:
    """The phases of a program, in order.

    Attributes:
        phases: The phases.
        beside: Phases that run side by side, one or several behind one another on each side; those
            that are in none of these groups run alone.
        lanes: The lanes of nodes that run in another one than they were recorded in.
        running: For each all-reduce, which runs beside all that comes behind it, the phase before
            which it is done; None: that is the end.
    """

    phases: list[Phase] = field(default_factory=list)
    beside: list[list[Phase]] = field(default_factory=list)
    lanes: dict[Node, int] = field(default_factory=dict)
    running: list[tuple[Collective, Phase | None]] = field(default_factory=list)

    def nodes(self) -> Iterable[Node]:
        """Yield all nodes; those that run side by side one replica after the other."""
        for phase in self.phases:
            yield from nodes_of(phase)


def nodes_of(phase: Phase) -> Iterable[Node]:
    """Yield the nodes of a phase; those that run side by side one replica after the other."""
    if isinstance(phase, Lanes):
        for lane in sorted(phase.nodes):
            yield from phase.nodes[lane]
    elif not isinstance(phase, Guard):
        yield from phase.nodes


def make_schedule(graph: Graph) -> Schedule:
    """Return the order in which to run what a graph's results depend on."""
    early, late = split_at_guard(graph)
    schedule = Schedule()
    _add_levels(schedule, early)
    if graph.guards:
        schedule.phases.append(Guard(graph.guards))
    _add_levels(schedule, late)
    return schedule


def split_at_guard(graph: Graph) -> tuple[list[Node], list[Node]]:
    """Return the nodes that results depend on: those before the guard, and those behind it."""
    needed = _needed(graph)
    # So is what an all-reduce sums before an update has begun: it starts as early as it can.
    started = [node.output for each in graph.collectives for node in each.nodes if not node.updates]
    guarded = ancestors([*graph.guards, *started])
    late: set[Node] = set()
    for node in needed:
        # What joins the replicas' gradients waits for the update that uses it: one pass does both.
        waits = node not in guarded and (node.updates or bool(graph.guards))
        if (waits and node.lane == JOINT) or any(value.node in late for value in node.inputs):
            late.add(node)
    return [node for node in needed if node not in late], [node for node in needed if node in late]


def _needed(graph: Graph) -> list[Node]:
    """Return the nodes that outputs, writes and guards depend on, in the order of recording.

    Random ones are needed in any case: a draw that nobody reads moves its stream on.
    """
    results = [*graph.outputs, *graph.guards, *(value for _, value in graph.writes)]
    wanted = ancestors([*results, *(node.output for node in graph.nodes if node.op.random)])
    for each in graph.collectives:
        if not wanted.isdisjoint(each.nodes):
            wanted.update(each.nodes)  # All ranks take part, whoever reads the sums.
    return [node for node in graph.nodes if node in wanted]


def ancestors(values: Iterable[Value]) -> set[Node]:
    """Return the nodes that values depend on, their own ones among them.

    Args:
        values: The values.
    """
    found: set[Node] = set()
    stack = [value.node for value in values if value.node is not None]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [value.node for value in node.inputs if value.node is not None]
    return found


def _add_levels(schedule: Schedule, nodes: list[Node]) -> None:
    for lanes, joint in levels(nodes):
        if lanes:
            schedule.phases.append(Lanes(lanes))
        _add_joint(schedule, joint)


def levels(nodes: list[Node]) -> Iterator[tuple[dict[int, list[Node]], list[Node]]]:
    """Yield what replicas do side by side, a list for each, and what is done where they then meet.

    A level holds what depends on nothing of another lane in it.
    """
    level: dict[Node, int] = {}
    for node in nodes:
        level[node] = max(
            (
                level[value.node] + (value.node.lane != node.lane)
                for value in node.inputs
                if value.node in level
            ),
            default=0,
        )
    for number in range(max(level.values(), default=-1) + 1):
        here = [node for node in nodes if level[node] == number]
        lanes: dict[int, list[Node]] = {}
        for node in here:
            if node.lane != JOINT:
                lanes.setdefault(node.lane, []).append(node)
        yield lanes, [node for node in here if node.lane == JOINT]


def _add_joint(schedule: Schedule, nodes: list[Node]) -> None:
    """Add nodes of no replica: as few and as long regions of elementwise work as there can be."""
    waiting = list(nodes)
    while waiting:
        plain = _take_ready(waiting, lambda node: not _in_pieces(node))
        if plain:
            schedule.phases.append(Joint(plain))
        if not waiting:
            return
        size = waiting[0].output.size
        region = _take_ready(waiting, functools.partial(_joins, size, set()))
        schedule.phases.append(Region(region, size))


def _joins(size: int, made: set[Value], node: Node) -> bool:
    """Whether a node joins a region, whose results so far are `made`, and if so note its own."""
    # A number out of a vector is known only when all of the vector is.
    scalars = (value.base for value in node.inputs if not value.spec.shape)
    if not _in_pieces(node, size) or any(base in made for base in scalars):
        return False
    made.add(node.output)
    return True


def _take_ready(waiting: list[Node], wanted: Callable[[Node], bool]) -> list[Node]:
    """Take out of `waiting`, in order, the wanted nodes that depend on no node left in it."""
    taken: list[Node] = []
    left: set[Node] = set(waiting)
    for node in list(waiting):
        if wanted(node) and not any(value.node in left for value in node.inputs):
            taken.append(node)
            left.discard(node)
    waiting[:] = [node for node in waiting if node in left]
    return taken


def _in_pieces(node: Node, size: int | None = None) -> bool:
    """Whether a node may be computed piece by piece: a vector from vectors and scalars."""
    shape = node.output.spec.shape
    return (
        node.op.elementwise
        and len(shape) == 1
        and (shape[0] > 1 if size is None else shape[0] == size)
        and all(value.spec.shape in (shape, ()) for value in node.inputs)
    )
