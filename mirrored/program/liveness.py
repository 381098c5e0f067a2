"""The first write and the last read of each value, and which new values are computed in place.

The plan of the memory rests on it: what nobody will read may be written over. A variable's new
value is computed in its memory only where nothing can stop the program any more, and nobody reads
the old value afterwards.
"""

from typing import Any

from mirrored.program.compiled_groups import columns_of_sum, loop_start
from mirrored.program.dataflow import SHARED, Graph, Node, Value
from mirrored.program.schedule import FusedGroup, Guard, Kernels, Phase, Schedule, nodes_of

FOREVER = 1 << 60


class Liveness:
    """Positions of nodes, and who reads which value.

    Args:
        graph: The graph.
        schedule: Its schedule.

    Attributes:
        graph: The graph.
        nodes: In the order of the schedule; a node's place there is its position.
        replicas: Whose each node is, as it runs.
        position: The position of each node.
        begins: The position of the first node that may run at the time of each node.
        ends: Up to when each node reads: as long as its group, or its kernel, runs.
        group: The fused group of each node that is in one.
        together: For each node that one kernel computes with others, all of them in order.
        reads: For each base value the nodes that read it, each with the part that it reads.
        kept: The base values that are needed after the last node.
    """

    def __init__(self, graph: Graph, schedule: Schedule) -> None:
        self.graph = graph
        launches = list(schedule.launches())
        self.replicas = {node: launch.replica for launch in launches for node in launch.nodes()}
        self.nodes = schedule.nodes()
        self.position = {node: i for i, node in enumerate(self.nodes)}
        self.group: dict[Node, FusedGroup] = {
            node: phase
            for phase in schedule.phases()
            if isinstance(phase, FusedGroup)
            for node in phase.nodes
        }
        self.together: dict[Node, list[Node]] = {
            node: phase.nodes
            for phase in schedule.phases()
            if isinstance(phase, Kernels) and phase.together
            for node in phase.nodes
        }
        self._checks = [
            node
            for node in self.nodes
            # Sums over workers are ordered: they raise where a worker fails.
            if node.op.ordered
            or (node.may_refuse and not (graph.labels_checked and node.op.of_labels))
        ]
        self._phase_end, self._first_write = self._phases(schedule)
        self.ends = self.position | {n: self._phase_end[n] for n in (*self.group, *self.together)}
        self._until = self._running(schedule)
        self.begins, self._meeting = self._meetings(schedule)
        self.reads: dict[Value, list[tuple[Node, Value]]] = {}
        for node in self.nodes:
            for value in node.inputs:
                self.reads.setdefault(value.base, []).append((node, value))
        self.kept = {value.base for value in (*graph.outputs, *graph.guards)}

    def _phases(self, schedule: Schedule) -> tuple[dict[Node, int], int]:
        """Return where the phase of each node ends, and from where on variables may be written."""
        ends: dict[Node, int] = {}
        position = first = 0
        for stage in schedule.stages:
            for phase in (phase for launch in stage for phase in launch.phases):
                nodes = list(nodes_of(phase))
                position += len(nodes)
                ends |= dict.fromkeys(nodes, position - 1)
                first = position if isinstance(phase, Guard) else first
            if any(launch.between or launch.collective for launch in stage):
                first = position  # What writes on several devices is one launch.
        first = max([first, *(self.position[check] + 1 for check in self._checks)])
        return ends, first

    def _running(self, schedule: Schedule) -> dict[Node, int]:
        """Return, for nodes of all-reduces, up to where they may be running."""
        begins: dict[Phase, int] = {}
        position = 0
        for phase in schedule.phases():
            begins[phase] = position
            position += sum(1 for _ in nodes_of(phase))
        until: dict[Node, int] = {}
        for collective, joined in schedule.running:
            # To the first node behind them, not to the one before: that may run beside them.
            end = position if joined is None else begins[joined]
            until |= dict.fromkeys(collective.nodes, end)
        return until

    def _meetings(self, schedule: Schedule) -> tuple[dict[Node, int], dict[Node, int]]:
        """Return, for each node, from where on and up to where other replicas may run beside it."""
        begins, ends = dict(self.position), dict(self._phase_end)
        for phases in schedule.beside:
            nodes = [node for phase in phases for node in nodes_of(phase)]
            begins |= dict.fromkeys(nodes, min(map(self.position.__getitem__, nodes)))
            ends |= dict.fromkeys(nodes, max(map(self._phase_end.__getitem__, nodes)))
        return begins, ends

    def is_certain(self, node: Node) -> bool:
        """Return whether nothing can stop the program once a node runs: it may write variables."""
        beside_checks = any(self.is_beside(check, node) for check in self._checks)
        return self.position[node] >= self._first_write and not beside_checks

    def last_read(self, base: Value, defined: int) -> int:
        """Return the position of the last node that needs a base value, written at `defined`."""
        if base in self.kept:
            return FOREVER
        maker = base.node
        own = base.replica if maker is None else self.replicas[maker]
        last = defined if maker is None else max(defined, self._until.get(maker, defined))
        for node, _ in self.reads.get(base, ()):
            # A group's nodes take turns, piece by piece. Another replica runs side by side with
            # what comes later in its phase.
            alike = self.replicas[node] in (own, SHARED)
            end = self.ends[node] if alike else self._meeting[node]
            last = max(last, end, self._until.get(node, end))
        return last

    def first_written(self, node: Node) -> int:
        """Return when a node's result is first written: a group's nodes take turns."""
        group = self.group.get(node)
        nodes = self.together.get(node, [node]) if group is None else group.nodes
        position = self.position[nodes[0]]
        if columns_of_sum(node) and node.device.backend.host_readable:
            return loop_start(self.nodes, position)  # It is added to while others are computed.
        return position

    def is_local(self, node: Node) -> bool:
        """Return whether a node's result is needed within its group, or kernel, alone."""
        group, together = self.group.get(node), self.together.get(node)
        if node.output in self.kept or (group is None and together is None):
            return False
        if together is not None:
            readers = {reader for reader, _ in self.reads.get(node.output, ())}
            return bool(readers) and readers <= {*together}
        return all(
            self.group.get(reader) is group and value.whole
            for reader, value in self.reads.get(node.output, ())
        )

    def dies_at(self, node: Node, base: Value, end: int) -> bool:
        """Return whether a node is the last to need the memory of a value, needed up to `end`."""
        if node in self.together:
            return False  # The kernel may still read it where it writes.
        if node not in self.group:
            # Another replica's reader runs beside the node, wherever it stands in their phase.
            return end == self.position[node] and not self._is_read_beside(node, base)
        inside = [r for r, _ in self.reads[base] if self.group.get(r) is self.group[node]]
        alone = inside == [node] and not self._is_read_beside(node, base)
        return alone and end == self._phase_end[node]

    def _is_read_beside(self, node: Node, base: Value) -> bool:
        """Whether another replica may read a value while a node runs."""
        return any(self.is_beside(reader, node) for reader, _ in self.reads[base])

    def is_beside(self, node: Node, other: Node) -> bool:
        """Return whether two nodes may run at the same time."""
        alike = self._meeting[node] == self._meeting[other]
        return alike and self.replicas[node] != self.replicas[other]


def may_overwrite(node: Node, value: Value) -> bool:
    """Whether a node's result may be written over one of its inputs, as far as the op goes."""
    sharing = [operand for operand in node.inputs if operand.base is value.base]
    if node.output.size == 1 and node.device.backend.host_readable:
        return False  # NumPy takes three times as long for one element that is written over.
    return (
        len(sharing) == 1
        and node.inputs.index(value) in node.op.may_alias
        and value.spec == node.output.spec
    )


# The storage of variables, and the place in it.
Place = tuple[Any, int]


def find_in_place_updates(
    liveness: Liveness, *, one_kernel: bool = False
) -> tuple[dict[Value, Place], list[tuple[Any, Value]]]:
    """Return the values that live with their variables, and the writes that are left to do.

    Args:
        liveness: Who reads what, and when.
        one_kernel: Whether a fused group is one kernel, which needs memory for its results alone,
            and can leave a variable as it is where the guard fails, as no other kernel can.
    """
    by_base: dict[Value, list[tuple[Any, Value]]] = {}
    for variable, value in liveness.graph.writes:
        by_base.setdefault(value.base, []).append((variable, value))
    guard = liveness.graph.guard_device
    in_place: dict[Value, Place] = {}
    left: list[tuple[Any, Value]] = []
    for base, writes in by_base.items():
        guarded = one_kernel and guard is not None and base.node not in liveness.group
        place = None if guarded else _place_of(liveness, base, writes)
        if place is None:
            left += writes
        else:
            in_place[base] = place
    liveness.kept |= {value.base for _, value in left}
    if not one_kernel:
        _extend(liveness, in_place)
    return in_place, left


def _place_of(liveness: Liveness, base: Value, writes: list[tuple[Any, Value]]) -> Place | None:
    node = base.node
    if node is None or base in liveness.kept or not liveness.is_certain(node):
        return None
    pinned = [(variable.pinned(), value.offset) for variable, value in writes]
    places = {(storage, place - offset) for (storage, place), offset in pinned}
    if len(places) != 1 or sum(value.size for _, value in writes) != base.size:
        return None
    storage, offset = places.pop()
    if storage.device is not node.device or storage.spec.dtype != base.spec.dtype:
        return None
    return (storage, offset) if _may_write(liveness, node, storage, offset) else None


def _may_write(liveness: Liveness, node: Node, storage: Any, offset: int) -> bool:
    """Whether nothing reads the old value in a variable's memory once `node` writes there."""
    size, position = node.output.size, liveness.position[node]
    for base, readers in liveness.reads.items():
        if base.storage is not storage:
            continue
        for reader, value in readers:
            if value.offset >= offset + size or value.offset + value.size <= offset:
                continue
            if liveness.is_beside(reader, node):
                return False
            aligned = value.offset == offset and value.size == size
            if liveness.group.get(reader, reader) is liveness.group.get(node, node):
                # Piece by piece: each piece is read before it is written, or by its writer.
                if not aligned or liveness.position[reader] > position:
                    return False
                if reader is node and not may_overwrite(node, value):
                    return False
            elif liveness.position[reader] >= position:
                return False
    return True


def _extend(liveness: Liveness, in_place: dict[Value, Place]) -> None:
    """Let what only leads to a variable's new value be computed in its memory too.

    A group then reads and writes one piece of memory less.
    """
    for base, (storage, offset) in list(in_place.items()):
        node = base.node
        while node is not None and node in liveness.group:
            earlier = _overwritten_by(liveness, node)
            maker = None if earlier is None else earlier.node
            if earlier is None or maker is None or earlier in in_place:
                break  # That one is another variable's new value.
            if not _may_write(liveness, maker, storage, offset):
                break
            in_place[earlier] = (storage, offset)
            node = maker


def _overwritten_by(liveness: Liveness, node: Node) -> Value | None:
    """Return a value within a node's group that the node's result may be written over."""
    for value in node.inputs:
        maker = value.base.node
        if (
            maker is not None
            and liveness.group.get(maker) is liveness.group[node]
            and liveness.is_local(maker)
            and may_overwrite(node, value)
            and value.whole
            and liveness.reads[value.base][-1][0] is node
        ):
            return value.base
    return None
