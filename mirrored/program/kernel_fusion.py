"""Groups nodes that one kernel computes, so that fewer results go through memory.

On the host a fused group of elementwise nodes is cut into pieces that a cache holds, a shard a
thread. On a device with streams it is one kernel, and so are some others that are not all
elementwise: a launch takes as long as a small op, and passing values through memory longer than
computing them.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from mirrored.backends import Backend
from mirrored.backends.stream_backend import Combination, OpSpec, is_offloaded
from mirrored.program.dataflow import Graph, Node, Value
from mirrored.program.schedule import FusedGroup, Kernels


class Readers:
    """Which nodes read each value of a graph.

    Args:
        graph: The graph.
        nodes: Those of its nodes that run.
    """

    def __init__(self, graph: Graph, nodes: Iterable[Node]) -> None:
        kept = (*graph.outputs, *graph.guards, *(value for _, value in graph.writes))
        self._kept = {value.base for value in kept}
        self._readers: defaultdict[Value, list[Node]] = defaultdict(list)
        for node in nodes:
            for value in node.inputs:
                self._readers[value.base].append(node)

    def are(self, node: Node, readers: Iterable[Node]) -> bool:
        """Return whether nobody but some nodes reads a node's result."""
        value = node.output
        return value not in self._kept and {*self._readers.get(value, ())} <= set(readers)


def units(nodes: Sequence[Node], readers: Readers | None = None) -> list[list[Node]]:
    """Return nodes one by one, but those that one kernel computes in one list.

    Args:
        nodes: Nodes that one stream runs, in an order in which they can be computed.
        readers: Who reads each value of their graph; without, results are taken to be read by all.
    """
    known = _Units(nodes, readers)
    ordered: list[list[Node]] = []
    done: set[Node] = set()

    def emit(node: Node) -> None:
        if node in done:
            return
        unit = known.of.get(node, [node])
        done.update(unit)
        if len(unit) > 1:
            # What later ones need beside what the first needs does not depend on the first.
            wanted = known.before(unit)
            for earlier in nodes:
                if earlier in wanted:
                    emit(earlier)
        ordered.append(unit)

    for node in nodes:
        emit(node)
    return ordered


class _Units:
    """Finds what is computed together.

    Attributes:
        of: For each node that is computed with others, all of them in order.
    """

    def __init__(self, nodes: Sequence[Node], readers: Readers | None) -> None:
        self.of: dict[Node, list[Node]] = {}
        self._nodes = set(nodes)
        self._readers = readers
        backends = {node.device.backend for node in nodes}
        self._known: dict[Backend, Mapping[tuple[str, ...], Combination]] = {
            backend: backend.combinations for backend in backends if is_offloaded(backend)
        }
        names = {name for known in self._known.values() for key in known for name in key}
        candidates = [
            node for node in nodes if node.op.name in names and node.device.backend in self._known
        ]
        self._combine_beside(candidates)
        self._combine_behind(candidates)

    def before(self, unit: Sequence[Node]) -> set[Node]:
        """Return the nodes that have to be computed before a unit: with all of their own units."""
        nodes: set[Node] = set()
        stack = [value.node for node in unit for value in node.inputs if value.node not in unit]
        while stack:
            node = stack.pop()
            if node is None or node in nodes or node not in self._nodes:
                continue
            for member in self.of.get(node, [node]):
                nodes.add(member)
                stack += [value.node for value in member.inputs]
        return nodes

    def _combine_beside(self, candidates: Sequence[Node]) -> None:
        """Combine nodes with those that have the same inputs, and more behind them."""
        by_inputs: dict[tuple[Value, ...], list[Node]] = {}
        for node in candidates:
            by_inputs.setdefault(node.inputs, []).append(node)
        for second in candidates:
            for count in range(1, len(second.inputs)):
                for first in by_inputs.get(second.inputs[:count], ()):
                    self._combine([first, second], lambda node: node not in self.of)

    def _combine_behind(self, candidates: Sequence[Node]) -> None:
        """Combine units with what makes what their nodes read, from the last to the first."""
        for node in reversed(candidates):
            unit = self.of.get(node, [node])
            maker = unit[0].inputs[0].node if unit[0].inputs else None
            if unit[0] is not node or maker not in self._nodes:
                continue
            unit_before = self.of.get(maker, [maker])
            if unit_before[-1] is maker and all(_reads_whole(member, maker) for member in unit):
                self._combine([*unit_before, *unit], lambda _: True)

    def _combine(self, unit: list[Node], is_free: Callable[[Node], bool]) -> None:
        """Note a unit, where a kernel computes it and nothing that it needs depends on it."""
        first = unit[0]
        known = self._known.get(first.device.backend, {})
        combination = known.get(tuple(node.op.name for node in unit))
        if combination is None or not all(map(is_free, unit)):
            return
        if any(node.device is not first.device or node.replica != first.replica for node in unit):
            return
        for node, stores in zip(unit, combination.stores, strict=True):
            if not stores and (self._readers is None or not self._readers.are(node, unit)):
                return
        if combination.fits([_spec(node) for node in unit]) and self.before(unit).isdisjoint(unit):
            self.of |= dict.fromkeys(unit, unit)


def _reads_whole(node: Node, maker: Node) -> bool:
    """Whether all that a node reads of another one's result is all of it, as its first input."""
    read = [i for i, value in enumerate(node.inputs) if value.base is maker.output]
    return read in ([], [0]) and (not read or node.inputs[0].whole)


def _spec(node: Node) -> OpSpec:
    inputs = tuple((value.spec.shape, value.spec.dtype) for value in node.inputs)
    return OpSpec(inputs, (node.output.spec.shape, node.output.spec.dtype), node.attrs)


# Elements that a piece of a group has: a few vectors of 64k floats fit a core's own cache.
# Shorter vectors are not cut: the calls would cost more than the cache saves.
_PIECE = 1 << 16
_UNCUT = 1 << 17
# Shorter vectors than this one thread computes sooner than several meet.
_SHARED_FROM = 1 << 13
_LINE = 64  # Elements: shards begin where a cache line does, of whatever dtype.

# What one kernel takes.
_MOST_INPUTS = 32
_MOST_NODES = 64


# ------------------------------------------------------------------ groups of the host, in pieces


def cut(nodes: Iterable[Node]) -> list[Kernels | FusedGroup]:
    """Return nodes of no replica in as few and as long groups of vectors as there can be."""
    phases: list[Kernels | FusedGroup] = []
    waiting = list(nodes)
    while waiting:
        plain = _take_ready(waiting, lambda node: not _in_pieces(node))
        if plain:
            phases.append(Kernels(plain))
        if waiting:
            size = waiting[0].output.size
            group = _take_ready(waiting, functools.partial(_joins, size, set()))
            phases.append(FusedGroup(group, size))
    return phases


def _joins(size: int, written: set[Value], node: Node) -> bool:
    """Whether a node joins a group, whose results so far are `written`, and if so note its own."""
    # A number out of a vector is known only when all of the vector is.
    scalars = (value.base for value in node.inputs if not value.spec.shape)
    if not _in_pieces(node, size) or any(base in written for base in scalars):
        return False
    written.add(node.output)
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
    """Whether a node may be computed piece by piece: a vector from vectors and scalars.

    Not where it may refuse one of the pieces: others would have been written by then.
    """
    shape = node.output.spec.shape
    return (
        node.op.elementwise
        and not node.may_refuse
        and len(shape) == 1
        and (shape[0] > 1 if size is None else shape[0] == size)
        and all(value.spec.shape in (shape, ()) for value in node.inputs)
    )


def pieces(size: int, threads: int, thread: int) -> list[tuple[int, int]]:
    """Return where the pieces of one thread's shard of a vector begin and end.

    Args:
        size: The length of the vector.
        threads: How many threads share it.
        thread: The number of the thread.

    Example:
        >>> pieces(10_000, 2, 1)
        [(5056, 10000)]
    """
    share = -(-size // threads) if size >= _SHARED_FROM else size
    share = -(-share // _LINE) * _LINE
    start, stop = min(thread * share, size), min((thread + 1) * share, size)
    step = _PIECE if stop - start > _UNCUT else max(stop - start, 1)
    return [(begin, min(begin + step, stop)) for begin in range(start, stop, step)]


def register_numbers(group: FusedGroup, local: set[Value]) -> dict[Value, int]:
    """Give the values that only a group's pieces have as few registers as they need."""
    last: dict[Value, int] = {}
    for i, node in enumerate(group.nodes):
        for value in node.inputs:
            last[value.base] = i
    numbers: dict[Value, int] = {}
    free: list[int] = []
    for i, node in enumerate(group.nodes):
        inputs = [value.base for value in node.inputs]
        ending = {value for value in inputs if value in numbers and last[value] == i}
        # Before the result has its place: it may take over only what the op may overwrite.
        early = {
            value
            for value in ending
            if inputs.index(value) in node.op.may_alias
            and inputs.count(value) == 1
            and value.spec == node.output.spec
        }
        free += [numbers[value] for value in early]
        if node.output in local:
            numbers[node.output] = free.pop() if free else len(set(numbers.values()) | set(free))
        free += [numbers[value] for value in ending - early]
    return numbers


# ------------------------------------------------------------------ groups of one kernel


def group(nodes: Iterable[Node], readers: "Readers | None" = None) -> list[Kernels | FusedGroup]:
    """Return one replica's nodes as groups that one kernel computes, others as `units` does.

    Args:
        nodes: The nodes, in an order in which they can be computed.
        readers: Who reads each value of their graph.
    """
    return _Groups(units(list(nodes), readers)).phases


class _Groups:
    def __init__(self, units: list[list[Node]]) -> None:
        self.phases: list[Kernels | FusedGroup] = []
        self._place: dict[Node, int] = {}
        self._inputs: list[set[Value]] = []
        for unit in units:
            if len(unit) == 1 and _is_step(unit[0]):
                self._add_step(unit[0])
            else:
                self._add(Kernels(unit, together=len(unit) > 1), unit)

    def _add(self, phase: Kernels | FusedGroup, nodes: list[Node]) -> None:
        self._place |= dict.fromkeys(nodes, len(self.phases))
        self.phases.append(phase)
        self._inputs.append({value for node in nodes for value in node.inputs})

    def _add_step(self, node: Node) -> None:
        """Put a node into the last group that can take it, or begin one."""
        for place in range(len(self.phases) - 1, -1, -1):
            if self._can_join(node, place):
                fused = self.phases[place]
                fused.nodes.append(node)
                self._place[node] = place
                self._inputs[place] |= {v for v in node.inputs if v.base.node not in fused.nodes}
                return
            if any(self._place.get(value.node) == place for value in node.inputs if value.node):
                break  # It needs what is computed there.
        self._add(FusedGroup([node], node.output.size), [node])

    def _can_join(self, node: Node, place: int) -> bool:
        fused = self.phases[place]
        if not isinstance(fused, FusedGroup) or fused.size != node.output.size:
            return False
        if len(fused.nodes) >= _MOST_NODES:
            return False
        if len(self._inputs[place] | set(node.inputs)) > _MOST_INPUTS:
            return False
        if node.device.backend.memory != fused.nodes[0].device.backend.memory:
            return False
        for value in node.inputs:
            producer = -1 if value.node is None else self._place.get(value.node, -1)
            # What the group computes itself is there element by element, not as a whole.
            if producer > place or (producer == place and not _is_full(value, fused.size)):
                return False
        return True


def _is_full(value: Value, size: int) -> bool:
    return value.whole and value.size == size


def _is_step(node: Node) -> bool:
    """Whether one kernel can compute a node with others."""
    backend = node.device.backend
    if not is_offloaded(backend) or not backend.fuses(node.op.name):
        return False
    return all(value.device.backend.memory == backend.memory for value in node.inputs)
