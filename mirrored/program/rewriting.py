"""Copies of a recorded graph in which some values are replaced."""

import weakref

from mirrored.program.graph import Collective, Graph, Node, Value


class Rewriting:
    """A copy of a graph; subclasses replace some of its values.

    Args:
        graph: The graph, which stays as it is.
    """

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self._values: dict[Value, Value] = {}
        self._inputs: dict[int, tuple[Value, ...]] = {}
        self._nodes: dict[Node, Node] = {}

    def replace(self, value: Value, new: Value) -> None:
        """Replace a value by another one."""
        self._values[value] = new

    def node(self, node: Node) -> Node:
        """Return the copy of a node, whose inputs have been copied before."""
        inputs = self._inputs.get(id(node.inputs))
        if inputs is None:  # Those of an all-reduce are the same for all its nodes.
            inputs = self._inputs[id(node.inputs)] = tuple([self.of(v) for v in node.inputs])
        output = Value(node.output.spec, node.output.device, node.output.replica)
        self._values[node.output] = output
        after = None if node.after is None else self._nodes[node.after]
        new = Node(node.op, inputs, node.attrs, output, node.replica, node.updates, after)
        output.made_by = weakref.ref(new)
        self._nodes[node] = new
        return new

    def of(self, value: Value) -> Value:
        """Return the value that replaces a value; the value itself where it is kept."""
        known = self._values.get(value)
        if known is None:
            known = self._values[value] = self._replacement(value)
        return known

    def _replacement(self, value: Value) -> Value:
        """Return the copy of a value that no copied node computes."""
        if value.base is value:
            return value  # An input, a constant, or what all such graphs read.
        base = self.of(value.base)
        return value if base is value.base else self.part(value, base, value.offset)

    @staticmethod
    def part(value: Value, base: Value, offset: int) -> Value:
        """Return the part of a base that stands in the place of a value."""
        part = base.part(value.spec, offset)
        part.replica = value.replica
        return part

    def outputs(self) -> list[Value]:
        """Return what the graph returns."""
        return [self.of(value) for value in self.old.outputs]

    def guards(self) -> list[Value]:
        """Return what has to be finite."""
        return [self.of(value) for value in self.old.guards]

    def collectives(self) -> list[Collective]:
        """Return the all-reduces, all of whose nodes are made."""
        return [
            Collective(
                work.connection, work.what, work.timeout, [self._nodes[n] for n in work.nodes]
            )
            for work in self.old.collectives
        ]
