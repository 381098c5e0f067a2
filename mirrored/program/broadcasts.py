"""Lets operations of a recorded graph read values that were repeated along axes as they were.

The gradient of a mean is a few numbers for many rows: to repeat them takes a pass over memory, and
a sum or a product with them repeats them anyway. The numbers and their order stay, so do the bits.
"""

from dataclasses import replace

import numpy as np

from mirrored.ops.op import OPS
from mirrored.ops.spec import Shape, TensorSpec
from mirrored.program.dataflow import Graph, Node, Value
from mirrored.program.rewriting import Rewriting

# Operations whose kernels repeat an operand along axes where it has one element.
_READERS = ("AddN", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "SquaredDifference", "Sub")


def without_broadcasts(graph: Graph) -> Graph:
    """Return a graph in which nothing is repeated that all readers can repeat themselves.

    Args:
        graph: A graph of the host, which stays as it is.
    """
    if "BroadcastTo" not in {node.op.name for node in graph.nodes}:
        return graph
    return _WithoutBroadcasts(graph).graph()


class _WithoutBroadcasts(Rewriting):
    """A copy of a graph; values that are repeated in it are repeated where something needs that."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        # By values that are repeated: what they repeat, and the node that does.
        self._narrow: dict[Value, tuple[Value, Node]] = {}

    def graph(self) -> Graph:
        """Return the graph."""
        for node in self.old.nodes:
            self._add(node)
        return self.copy()

    def _add(self, node: Node) -> None:
        if node.op.name == "BroadcastTo":
            (value,) = (self.of(value) for value in node.inputs)
            number = TensorSpec((), value.spec.dtype)
            self._narrow[node.output] = value.part(number) if value.size == 1 else value, node
            return
        known = [self._narrow.get(value) for value in node.inputs]
        if node.op.name not in _READERS or not any(known):
            self.node(node)
            return
        operands = tuple(
            self.of(value) if narrow is None else narrow[0]
            for value, narrow in zip(node.inputs, known, strict=True)
        )
        shape = np.broadcast_shapes(*(value.spec.shape for value in operands))
        if shape == node.output.spec.shape:
            self.replace(node.output, self._computed(node, operands, shape))
        else:
            self._narrow[node.output] = self._computed(node, operands, shape), node

    def _computed(self, node: Node, inputs: tuple[Value, ...], shape: Shape) -> Value:
        """Return the result of a new node like another one, with other inputs and of a shape."""
        spec = TensorSpec(shape, node.output.spec.dtype)
        output = Value(spec, node.output.device, node.replica)
        self.nodes.append(replace(node, inputs=inputs, output=output, after=None))
        return output

    def _replacement(self, value: Value) -> Value:
        known = self._narrow.get(value)
        if known is None:
            return super()._replacement(value)
        narrow, node = known
        repeated = replace(node, op=OPS["BroadcastTo"], attrs={"shape": value.spec.shape})
        return self._computed(repeated, (narrow,), value.spec.shape)
