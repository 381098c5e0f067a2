"""Describes a recorded function in lines that are the same on all workers of one program.

Left out is what depends on the layout of replicas over workers: what further replicas compute, the
sums of a worker's own replicas, copies between devices, and slices of values that were gathered.
"""

import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from mirrored.program import Graph
from mirrored.program.dataflow import ALL_REDUCE, COPY, SHARED, Node, Value

PLAIN = (bool, int, float, str, type(None))
# The sums by which workers gather, of which each takes other rows, and by which all take the value
# that one replica has, which is made of what that one computes alone.
GATHERED, OF_FIRST = "gathered values", "the first replica's value"

# By what the replicas of one worker bring their values together.
_JOINS = ("AddN", "ConcatV2", COPY.name)
# Attributes of random draws that depend on the example's position, or are set in each run.
_OF_DRAWS, _OF_ROWS = ("first", "key", "draw"), ("index",)
_OF_WORKERS = ("is_first",)  # What each worker has of its own.


class GraphLines:
    """Lines about a graph, each about one operation of the first replica or of all replicas.

    A line has the operation, its result's shape and dtype, its settings, and its inputs: constants
    by their values, results of other operations by the numbers of their lines.

    Args:
        graph: The recorded function.
        arrays: Whether constants of several elements are compared by their values too.
    """

    def __init__(self, graph: Graph, *, arrays: bool) -> None:
        self._graph = graph
        self._arrays = arrays
        self._sums_by_name = _sums_by_name(graph)
        self._joins = _joins(graph)
        self._foreign = _depending(graph, self._is_foreign())
        first = [value for value in graph.inputs if value.replica <= 0]
        self._inputs = {id(value): i for i, value in enumerate(first)}

    def sums(self) -> list[str]:
        """Return a line per sum over workers."""
        return [str(node.output.spec) for node in self._graph.nodes if is_over_workers(node)]

    def operations(self) -> list[str]:
        """Return the lines of what sums over workers and updates of variables are made of.

        Where there are none, as in predictions, return those of all operations. What one worker
        alone may do, such as printing, is left out.
        """
        sums = [node for node in self._graph.nodes if is_over_workers(node)]
        ends = self._sums_by_name[OF_FIRST]
        return list(self._lines(_makers([*sums, *self._updates()], lambda node: id(node) in ends)))

    def updates(self) -> list[str]:
        """Return the lines of how variables follow from sums: alike for any number of examples."""
        of_examples = _depending(
            self._graph,
            lambda node: (
                not _is_sum(node)
                and (node.op.random or any(id(fed.base) in self._inputs for fed in node.inputs))
            ),
        )
        makers = _makers(self._updates(), _is_sum)
        return list(self._lines(makers - of_examples)) if makers else []

    def _is_foreign(self) -> Callable[[Node], bool]:
        """Return a function that says whether a node belongs to the layout of replicas."""
        own = {node.device for node in self._graph.nodes if node.replica == 0}
        others = {node.device for node in self._graph.nodes if node.replica > 0} - own
        gathered = self._sums_by_name[GATHERED]

        def is_foreign(node: Node) -> bool:
            if _is_sum(node):
                return id(node) in gathered
            if node.replica == SHARED and node.device in others:
                return True
            return node.replica > 0 or any(value.base.replica > 0 for value in node.inputs)

        return is_foreign

    def _updates(self) -> list[Node]:
        written = (value.node for variable, value in self._graph.writes if variable.trainable)
        return [node for node in written if node is not None]

    def _lines(self, chosen: Collection[int]) -> Iterator[str]:
        numbers: dict[int, int] = {}
        places: dict[tuple[int, int], int] = {}

        def text(value: Value) -> str:
            node = value.node
            if value.constant is not None or value.data is not None:
                return self._constant(value)
            if value.base.storage is not None:
                # Offsets depend on which functions were recorded before: a new process has not all.
                place = id(value.base.storage), value.offset
                return f"variables {places.setdefault(place, len(places))}[:{value.size}]"
            if node is None:
                return f"input {self._inputs.get(id(value.base), '')}"
            if node.op is COPY:
                return text(node.inputs[0])
            line = f"line {numbers.get(id(node))}"
            # Of a gradient of gathered values each worker takes other rows.
            return line if _is_sum(node) else f"{line}[{value.offset}:]"

        for node in self._graph.nodes:
            key = id(node)
            alike = node.replica <= 0 and key not in self._joins and key not in self._foreign
            is_sum = _is_sum(node)
            if (
                not alike
                or (chosen and key not in chosen)
                or (is_sum and not is_over_workers(node))
            ):
                continue
            numbers[key] = len(numbers) + 1
            inputs = () if is_sum else tuple(map(text, node.inputs))
            of_sum = any(value.node is not None and _is_sum(value.node) for value in node.inputs)
            dropped = _OF_DRAWS if node.op.random else _OF_ROWS if of_sum else ()
            settings = [
                (name, plain)
                for name, value in sorted(node.attrs.items())
                if name not in (*dropped, *_OF_WORKERS) and (plain := _plain(value)) is not None
            ]
            yield f"{node.op.name}({', '.join(inputs)}) {node.output.spec} {settings}"

    def _constant(self, value: Value) -> str:
        tensor = value.constant
        array = np.asarray(value.data if tensor is None else tensor.numpy())
        if array.size == 1:
            return f"{array.reshape(-1)[0]!r}"
        return f"{value.spec}{_check(array) if self._arrays else ''}"


def is_over_workers(node: Node) -> bool:
    """Return whether a node is a sum that all workers take part in; of NCCL's ranks the first."""
    return node.op.ordered or (node.op is ALL_REDUCE and node.attrs["rank"] == 0)


def _is_sum(node: Node) -> bool:
    """Return whether a node has the sum over workers, of NCCL's ranks any."""
    return node.op.ordered or node.op is ALL_REDUCE


def _sums_by_name(graph: Graph) -> defaultdict[str, set[int]]:
    """Return the ids of the nodes of sums over workers, by what errors call these."""
    sums: defaultdict[str, set[int]] = defaultdict(set)
    for node in graph.nodes:
        if node.op.ordered:
            sums[node.attrs.get("what", "")].add(id(node))
    for collective in graph.collectives:
        sums[collective.what].update(map(id, collective.nodes))
    return sums


def _joins(graph: Graph) -> set[int]:
    """Return the ids of the nodes that bring a worker's own values together for a sum."""
    joins = {id(node) for node in graph.nodes if node.op is COPY}
    stack = [value.node for node in graph.nodes if is_over_workers(node) for value in node.inputs]
    while stack:
        node = stack.pop()
        if node is not None and node.op.name in _JOINS:
            joins.add(id(node))
            stack += [value.node for value in node.inputs]
    return joins


def _depending(graph: Graph, begins: Callable[[Node], bool]) -> set[int]:
    """Return the ids of nodes that begin something, and of those that depend on them.

    What was summed over workers depends on none of them any more.
    """
    depending: set[int] = set()
    for node in graph.nodes:
        inherits = not _is_sum(node) and any(id(value.node) in depending for value in node.inputs)
        if inherits or begins(node):
            depending.add(id(node))
    return depending


def _makers(nodes: Iterable[Node], is_end: Callable[[Node], bool]) -> set[int]:
    """Return the ids of nodes, and of all that they are made of, up to where that ends."""
    makers: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in makers:
            makers.add(id(node))
            if not is_end(node):
                stack += [value.node for value in node.inputs if value.node is not None]
    return makers


def _plain(value: Any) -> str | None:
    """Return a setting as text that is the same in all processes; None: it has none."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.dtype):
        return str(value.name)
    if isinstance(value, slice):
        return _plain((value.start, value.stop, value.step))
    if isinstance(value, tuple | list):
        return str([_plain(item) for item in value])
    if isinstance(value, np.ndarray | np.generic):
        return _check(np.asarray(value))
    return None


def _check(array: Any) -> str:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f" (check {zlib.crc32(data):08x})"
