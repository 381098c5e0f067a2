"""Which nodes of the host one compiled loop computes, and the calls that do."""

import math
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from typing import Any

from mirrored.backends.stream_backend import SUMS, FusedOp, Fusion
from mirrored.program.dataflow import Graph, Node, Value
from mirrored.program.kernel_calls import Call, make_loop
from mirrored.program.kernel_fusion import Readers
from mirrored.program.schedule import Schedule

# A loop is compiled if it computes this many elements, or replaces `_CALLS_FROM` calls of NumPy:
# it saves 2 us a step or more then, and a compiler takes 0.1 s, once for all processes.
COMPILED_FROM = 1 << 13
_CALLS_FROM = 8
_NODES_FROM = 6  # Fewer small nodes are not looked at: few of them take two calls or more.
_MOST_NODES = 64
# A single call of NumPy is one pass already, but slow where rows have no more elements than this.
_SHORT_ROW = 256
# How many inputs of an op are read, where that is fewer than it has: a program keeps zeros of Relu.
_READ = {"Relu": 1}


def fusion_of(nodes: Sequence[Node], kept: Sequence[int]) -> tuple[Fusion, list[Value]]:
    """Return elementwise nodes as one kernel, and the values that it reads.

    Args:
        nodes: The nodes, in order.
        kept: The numbers, from 0, of those whose results are kept.
    """
    inputs: dict[Any, Value] = {}
    places = {node.output: i for i, node in enumerate(nodes)}
    read: list[list[Any]] = []
    for node in nodes:
        keys: list[Any] = []
        for value in _read(node):
            key: Any = places.get(value.base)
            if key is None:
                key = (value.base, value.offset, value.spec)
                inputs.setdefault(key, value)
            keys.append(key)
        read.append(keys)
    numbers = {key: i for i, key in enumerate(inputs)}
    steps = tuple(
        FusedOp(
            node.op.name,
            tuple(len(inputs) + k if isinstance(k, int) else numbers[k] for k in keys),
            *node.output.spec,
        )
        for node, keys in zip(nodes, read, strict=True)
    )
    specs = tuple(value.spec for value in inputs.values())
    return Fusion(specs, steps, tuple(kept)), list(inputs.values())


def _read(node: Node) -> Sequence[Value]:
    return node.inputs[: _READ.get(node.op.name)]


def columns_of_sum(node: Node) -> int:
    """Return how many elements a sum over the first axes has; 0: a node is none."""
    if node.op.name not in SUMS:
        return 0
    shape, axes = node.inputs[0].spec.shape, sorted(node.attrs["axis"])
    rows, columns = math.prod(shape[: len(axes)]), math.prod(shape[len(axes) :])
    # NumPy adds a single column in another order, and copies a single row.
    return columns if axes == [*range(len(axes))] and rows > 1 and columns > 1 else 0


def loop_size(node: Node) -> int:
    """Return how many elements a loop would compute for a node."""
    is_sum = node.op.name in SUMS and columns_of_sum(node)
    return (node.inputs[0] if is_sum else node.output).size


def loop_start(nodes: Sequence[Node], position: int) -> int:
    """Return the position of the first node that one loop may compute with a node.

    Args:
        nodes: Nodes in the order in which they run.
        position: The node's position.
    """
    start, size = position, loop_size(nodes[position])
    while start > max(position - _MOST_NODES + 1, 0) and loop_size(nodes[start - 1]) == size:
        start -= 1
    return start


class _Loop:
    """Nodes that one loop computes.

    Attributes:
        nodes: The nodes, in order.
    """

    def __init__(self) -> None:
        from mirrored.backends.host_fusion import Indices

        self.nodes: list[Node] = []
        self._indices: Indices[Any] = Indices()
        self._computed: dict[Value, Node] = {}

    def add(self, node: Node) -> bool:
        """Add a node; return whether it may be computed in this loop, of the others' size."""
        inputs: list[Any] = []
        for value in _read(node):
            producer = self._computed.get(value.base)
            if producer is None:
                inputs.append(((value.base, value.offset, value.spec), value.spec.shape))
            elif producer.op.name in SUMS or not value.whole:
                return False  # Elements of other turns of the loop.
        columns = columns_of_sum(node)
        shape = (node.inputs[0] if columns else node.output).spec.shape
        if len(self.nodes) >= _MOST_NODES or not self._indices.add(inputs, shape, columns):
            return False
        self.nodes.append(node)
        self._computed[node.output] = node
        return True


class CompiledGroups:
    """Finds what one loop computes, in the calls of a program of the host.

    Args:
        graph: The program.
        schedule: Which of its nodes run.
        local: The values that have no memory.
    """

    def __init__(self, graph: Graph, schedule: Schedule, local: Container[Value]) -> None:
        self._graph, self._schedule = graph, schedule
        self._local = local
        self._readers: Readers | None = None
        self._compiles: bool | None = None

    def compile(self) -> None:
        """Start to compile what is new of the loops that there are calls of."""
        if self._compiles:
            from mirrored.backends.host_compiling import compile_in_background

            compile_in_background()

    def runs(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Return nodes in order, those that one loop computes in one list.

        Args:
            nodes: The nodes.
        """
        runs: list[list[Node]] = []
        for size, alike in groupby(nodes, loop_size):
            neighbours = list(alike)
            fits = size >= COMPILED_FROM or len(neighbours) >= _NODES_FROM
            loop: _Loop | None = None
            for node in neighbours:
                if not fits or not self._may_be_compiled(node):
                    loop = None
                elif loop is not None and loop.add(node):
                    continue
                else:
                    loop = _Loop()
                    loop = loop if loop.add(node) else None
                runs.append([node] if loop is None else loop.nodes)
        return runs

    def calls(
        self,
        nodes: Sequence[Node],
        pieces: Sequence[Sequence[Call]],
        array: Callable[[Value], Any],
    ) -> list[Call] | None:
        """Return the call of the loop that computes nodes; None: there is none.

        Args:
            nodes: One of `runs`.
            pieces: What computes the same by NumPy.
            array: Returns the array of a value, or a thread's part of it.
        """
        if loop_size(nodes[0]) < COMPILED_FROM and len(pieces[0]) < _CALLS_FROM:
            return None
        if not self._may_be_compiled(nodes[0]):
            return None
        from mirrored.backends.host_compiling import kernel_of, run
        from mirrored.backends.host_fusion import host_fusion

        if self._readers is None:
            self._readers = Readers(self._graph, self._schedule.nodes())
        kept = [
            i
            for i, node in enumerate(nodes)
            if node.output not in self._local and not self._readers.are(node, nodes)
        ]
        fusion, inputs = fusion_of(nodes, kept)
        loop = host_fusion(fusion)
        if loop is None or not kept or (len(pieces[0]) < 2 and loop.columns > _SHORT_ROW):
            return None
        outputs = [array(nodes[i].output) for i in kept]
        arguments = loop.arguments([array(value) for value in inputs], outputs)
        if arguments is None:
            return None
        kernel = kernel_of(loop.text)
        if kernel.function is not None:
            return [Call(kernel.function, (arguments,), node=nodes[-1])]
        return [Call(run, (kernel, arguments, make_loop(pieces)), node=nodes[-1])]

    def _may_be_compiled(self, node: Node) -> bool:
        from mirrored.backends.host_fusion import fuses  # Small programs need none of this.

        dtypes = (value.spec.dtype for value in (*node.inputs, node.output))
        if not fuses(node.op.name, dtypes) or node.may_refuse or not node.output.size:
            return False
        if node.op.name in SUMS and not columns_of_sum(node):
            return False
        if self._compiles is None:
            from mirrored.backends.host_compiling import compiles

            self._compiles = compiles()
        return self._compiles
