"""Which nodes of the host one compiled loop computes, and the calls that do."""

import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from mirrored.backends.stream_backend import FusedOp, Fusion
from mirrored.program.dataflow import Graph, Node, Value
from mirrored.program.kernel_calls import Call, make_loop
from mirrored.program.kernel_fusion import Readers

# Elements from which on a loop is compiled. It saves 2 us a step or more of them, and a compiler
# takes 0.1 s, once for all processes.
COMPILED_FROM = 1 << 13
_MOST_NODES = 64
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
        for value in node.inputs[: _READ.get(node.op.name)]:
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


class CompiledGroups:
    """Finds what one loop computes, in the calls of a program of the host.

    Args:
        graph: The program.
        local: The values that have no memory.
    """

    def __init__(self, graph: Graph, local: Container[Value]) -> None:
        self._graph = graph
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
        size = 0  # Of the last list's results, where others may join them.
        for node in nodes:
            own = math.prod(node.output.spec.shape)
            may_join = own >= COMPILED_FROM and self._may_be_compiled(node)
            if may_join and own == size and self._joins(node, runs[-1]):
                runs[-1].append(node)
            else:
                runs.append([node])
            size = own if may_join else 0
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
        if nodes[0].output.size < COMPILED_FROM or not self._may_be_compiled(nodes[0]):
            return None
        from mirrored.backends.host_compiling import kernel_of, run
        from mirrored.backends.host_fusion import host_fusion

        if self._readers is None:
            self._readers = Readers(self._graph)
        kept = [
            i
            for i, node in enumerate(nodes)
            if node.output not in self._local and not self._readers.are(node, nodes)
        ]
        fusion, inputs = fusion_of(nodes, kept)
        loop = host_fusion(fusion)
        if loop is None or not kept:
            return None
        outputs = [array(nodes[i].output) for i in kept]
        arguments = loop.arguments([array(value) for value in inputs], outputs)
        if arguments is None:
            return None
        kernel = kernel_of(loop.text)
        if kernel.function is not None:
            return [Call(kernel.function, (arguments,), node=nodes[-1])]
        return [Call(run, (kernel, arguments, make_loop(pieces)), node=nodes[-1])]

    def _joins(self, node: Node, nodes: Sequence[Node]) -> bool:
        """Whether a node may be one of a loop behind others of its size."""
        if len(nodes) >= _MOST_NODES:
            return False
        computed = {other.output for other in nodes}
        if any(value.base in computed and not value.whole for value in node.inputs):
            return False
        from mirrored.backends.host_fusion import host_fusion

        return host_fusion(fusion_of([*nodes, node], ())[0]) is not None

    def _may_be_compiled(self, node: Node) -> bool:
        from mirrored.backends.host_fusion import fuses  # Small programs need none of this.

        dtypes = [value.spec.dtype for value in (*node.inputs, node.output)]
        if node.may_refuse or not fuses(node.op.name, dtypes):
            return False
        if self._compiles is None:
            from mirrored.backends.host_compiling import compiles

            self._compiles = compiles()
        return self._compiles
