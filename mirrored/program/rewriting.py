"""Copies of a recorded graph in which some values are replaced, and graphs of other variables.

A recording that is kept without its variables is bound to others of the same kinds without running
Python: each call binds it to its own, for as long as they live.
"""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mirrored.program.dataflow import Collective, Graph, Node, Value
from mirrored.program.variable_access import variable_writes


class Rewriting:
    """A copy of a graph; subclasses replace some of its values.

    Args:
        graph: The graph, which stays as it is.

    Attributes:
        nodes: The nodes of the copy.
    """

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.nodes: list[Node] = []
        self._values: dict[Value, Value] = {}
        self._inputs: dict[int, tuple[Value, ...]] = {}
        self._nodes: dict[Node, Node] = {}

    def replace(self, value: Value, new: Value) -> None:
        """Replace a value by another one."""
        self._values[value] = new

    def node(self, node: Node) -> Node:
        """Add the copy of a node, whose inputs have been copied before, and return it."""
        inputs = self._inputs.get(id(node.inputs))
        if inputs is None:  # Those of an all-reduce are the same for all its nodes.
            inputs = self._inputs[id(node.inputs)] = tuple([self.of(v) for v in node.inputs])
        output = Value(node.output.spec, node.output.device, node.output.replica)
        self._values[node.output] = output
        after = None if node.after is None else self._nodes[node.after]
        new = Node(node.op, inputs, node.attrs, output, node.replica, node.updates, after)
        self._nodes[node] = new
        self.nodes.append(new)
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

    def copy(self, writes: list[tuple[Any, Value]] | None = None, **changes: Any) -> Graph:
        """Return the graph, all of whose nodes have been added.

        Args:
            writes: The variables that it writes, each with its last value; None: the same.
            changes: Further attributes of the graph that are others.
        """
        if writes is None:
            writes = [(variable, self.of(value)) for variable, value in self.old.writes]
        outputs = [self.of(value) for value in self.old.outputs]
        guards = [self.of(value) for value in self.old.guards]
        collectives = [
            Collective(
                work.connection, work.what, work.timeout, [self._nodes[n] for n in work.nodes]
            )
            for work in self.old.collectives
        ]
        return replace(
            self.old,
            nodes=self.nodes,
            outputs=outputs,
            guards=guards,
            collectives=collectives,
            writes=writes,
            **changes,
        )


class WeakVariable:
    """A variable with one value, as a program knows it that does not keep it.

    Args:
        variable: The variable.
    """

    __slots__ = ("_variable",)

    def __init__(self, variable: Any) -> None:
        self._variable = weakref.ref(variable)

    def pinned(self) -> tuple[Any, int]:
        """Return the memory that it stays in, and its place there; none where it is gone."""
        variable = self._variable()
        return (None, -1) if variable is None else variable.pinned()


@dataclass(eq=False, slots=True)
class Template:
    """A graph without the variables that a call gave it.

    Attributes:
        graph: The graph; those variables are in none of its attributes.
        places: For each base that is memory of theirs: where in it each begins and ends, and its
            number.
        writes: The numbers of those that are written, each with its last value.
    """

    graph: Graph
    places: dict[Value, list[tuple[int, int, int]]]
    writes: list[tuple[int, Value]]

    def takes(self, copies: Sequence[Any]) -> bool:
        """Return whether it computes the same with these: it has none of them for another reason.

        Args:
            copies: The variables, by number.
        """
        others = {id(variable) for variable, _, _ in self.graph.reads}
        return others.isdisjoint(map(id, copies)) and self.graph.is_current()

    def bound(self, copies: Sequence[Any]) -> Graph:
        """Return the graph of these variables, which it does not keep.

        Args:
            copies: The variables, by number.

        Raises:
            ResourceExhaustedError: A device has no room to bring one to memory that stays.
        """
        return _Binding(self, copies).graph()


def template_of(graph: Graph, copies: Sequence[Any]) -> Template | None:
    """Return a graph without some variables, which are taken from it; None: it has to keep them.

    It has to where it writes others, which may be what it keeps for each of these, and where it
    reads them as one with others.

    Args:
        graph: The graph.
        copies: The variables.
    """
    numbers = {id(copy): i for i, copy in enumerate(copies)}
    if any(id(variable) not in numbers for variable, _ in graph.writes):
        return None
    places: dict[Any, list[tuple[int, int, int]]] = {}
    others = [read for read in graph.reads if id(read[0]) not in numbers]
    for variable, storage, place in graph.reads:
        if id(variable) in numbers:
            where = (place, place + variable.size, numbers[id(variable)])
            places.setdefault(id(storage), []).append(where)
    by_base: dict[Value, list[tuple[int, int, int]]] = {}
    for value in _read(graph):
        known = places.get(id(value.base.storage))
        if known is not None:
            by_base[value.base] = known
            if _number(value, known) is None and _meets(value, known):
                return None
    writes = [(numbers[id(variable)], value) for variable, value in graph.writes]
    graph.reads, graph.writes = others, []
    kept = {id(storage) for _, storage, _ in others}
    for base in by_base:
        if id(base.storage) not in kept:
            base.storage = None  # Memory of theirs alone.
    return Template(graph, by_base, writes)


def _read(graph: Graph) -> Iterator[Value]:
    """Yield all values that are read."""
    for node in graph.nodes:
        yield from node.inputs
    yield from graph.outputs
    yield from graph.guards
    yield from (value for _, value in graph.writes)


def _number(value: Value, places: list[tuple[int, int, int]]) -> tuple[int, int] | None:
    """Return which variable a value is a part of, and from which of its elements on."""
    for begin, end, number in places:
        if begin <= value.offset and value.offset + value.size <= end:
            return number, value.offset - begin
    return None


def _meets(value: Value, places: list[tuple[int, int, int]]) -> bool:
    """Return whether a value has elements of one of the variables."""
    first, last = value.offset, value.offset + value.size
    return any(begin < last and first < end for begin, end, _ in places)


class _Binding(Rewriting):
    """A copy of a template's graph, bound to some variables."""

    def __init__(self, template: Template, copies: Sequence[Any]) -> None:
        super().__init__(template.graph)
        self._template = template
        self._copies = copies
        self._bases: dict[int, Value] = {}
        used = {number for spots in template.places.values() for _, _, number in spots}
        used |= {number for number, _ in template.writes}
        with variable_writes:
            self._pinned = {number: copies[number].pinned() for number in sorted(used)}

    def graph(self) -> Graph:
        """Return the graph."""
        for node in self.old.nodes:  # Each after what it reads.
            self.node(node)
        weak = {number: WeakVariable(self._copies[number]) for number in self._pinned}
        return self.copy(
            writes=[(weak[number], self.of(value)) for number, value in self._template.writes],
            reads=[
                *self.old.reads,
                *((weak[number], *pinned) for number, pinned in self._pinned.items()),
            ],
            _looked_at=-1,
        )

    def _replacement(self, value: Value) -> Value:
        """Return what stands in the place of a value: a part of a variable's memory, if it was."""
        spots = self._template.places.get(value.base)
        spot = None if spots is None else _number(value, spots)
        if spot is None:
            return super()._replacement(value)
        number, offset = spot
        storage, place = self._pinned[number]
        return self.part(value, self._base(storage), place + offset)

    def _base(self, storage: Any) -> Value:
        base = self._bases.get(id(storage))
        if base is None:
            base = self._bases[id(storage)] = Value(storage.spec, storage.device)
            base.storage = storage
        return base
