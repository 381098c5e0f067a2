"""Finds nodes that one kernel computes though they are not all elementwise.

What only these pass to each other need not go through memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mirrored.backends import Backend
from mirrored.backends.stream_backend import Combination, OpSpec, is_offloaded
from mirrored.program.graph import Graph, Node, Value


class Readers:
    """Which nodes of a graph read each value.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        kept = (*graph.outputs, *graph.guards, *(value for _, value in graph.writes))
        self._kept = {value.base for value in kept}
        self._readers: dict[Value, set[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self._readers.setdefault(value.base, set()).add(node)

    def are(self, node: Node, readers: Iterable[Node]) -> bool:
        """Return whether nobody but some nodes reads a node's result."""
        value = node.output
        return value not in self._kept and self._readers.get(value, set()) <= set(readers)


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
