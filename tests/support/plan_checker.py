"""A checker that plays the memory plans of programs, byte by byte.

It knows nothing of how long values live. It notes whose each byte is, looks before every read, and
holds that what may run side by side does not touch what one of them writes.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mirrored.program.concurrency import Streams, Threads
from mirrored.program.dataflow import Graph, Node, Value, joins_rows
from mirrored.program.memory_planner import plan_memory
from mirrored.program.schedule import FusedGroup, Guard, make_schedule
from mirrored.program.streamed.stream_plan import plan_stream_memory


class Place(NamedTuple):
    """A piece of memory: which, where it begins and where it ends, in bytes."""

    memory: Any
    start: int
    stop: int

    def overlaps(self, other: "Place | None") -> bool:
        if other is None or self.memory != other.memory:
            return False
        return max(self.start, other.start) < min(self.stop, other.stop)

    def half(self, number: int | None) -> "Place":
        """Return the first or the second half of the elements, of eight bytes at most; or all."""
        if number is None:
            return self
        middle = self.start + (self.stop - self.start) // 16 * 8
        return self._replace(stop=middle) if number == 0 else self._replace(start=middle)


def touch(some: Sequence[Place], others: Sequence[Place]) -> bool:
    """Return whether any of some places overlaps any of others."""
    return any(a.overlaps(b) for a in some for b in others)


class Touched(NamedTuple):
    """What one side has read and written."""

    reads: list[Place]
    writes: list[Place]


class PlanChecker:
    """Plays a program's plan through, twice: what is written once must last.

    Args:
        graph: The graph.
        streams: Whether the rules are those of streams, where a fused group is one kernel, whose
            threads read and write their elements in any order; else it is computed piece by piece.

    Attributes:
        plan: The plan.
    """

    def __init__(self, graph: Graph, *, streams: bool) -> None:
        self.graph = graph
        self.streams = streams
        self.schedule = make_schedule(graph, Streams(graph) if streams else Threads())
        self.counters: dict[Node, Value] = {}
        if streams:
            self.plan, _, _, self.counters = plan_stream_memory(graph, self.schedule)
        else:
            self.plan = plan_memory(graph, self.schedule)
        self.owners: dict[Any, np.ndarray] = {}
        self.ids: dict[Any, int] = {}
        self.parts: dict[Any, set[int]] = {}  # As parts of which joined values a value is kept.
        # What each side touched since all of them met, and what is being summed beside them.
        self.touched: dict[Any, Touched] = {}
        self.running: list[Touched] = []

    def check(self) -> None:
        for value in self.plan.blocks:
            if value.data is not None:
                self.own(self.place_of(value), value)
        for _ in range(2):
            for value in (*self.graph.inputs, *self.counters.values()):
                self.own(self.place_of(value), value)
            self.fill_variables()
            self.step()
            for value in self.graph.outputs:
                self.read(value)
            for variable, value in self.plan.commits:
                self.read(value)
                self.own(self.place_of_variable(variable, value), value.base)
            for variable, value in self.graph.writes:
                owners = self.bytes_of(self.place_of_variable(variable, value))
                assert (owners == self.id_of(value.base)).all(), "a variable has not its new value"

    def fill_variables(self) -> None:
        for base in self.bases:
            if base.storage is not None:
                self.own(Place(id(base.storage), 0, base.nbytes), base)

    # ------------------------------------------------------------------ what runs

    def step(self) -> None:
        asked = joined = 0
        self.variables_written = False
        seen: set[Node] = set()
        for stage in self.schedule.stages:
            nodes = [node for launch in stage for node in launch.nodes()]
            assert len(set(nodes)) == len(nodes)
            assert seen.isdisjoint(nodes), "a node runs twice"
            seen |= set(nodes)
            if stage[0].collective is not None:
                self.sum(stage[0].collective)
                asked += 1
                continue
            self.running = self.running[max(stage[0].waits - joined, 0) :]
            joined = max(joined, stage[0].waits)
            assert len(self.running) == asked - joined
            self.stage(stage)
        self.running = []

    def stage(self, stage: Any) -> None:
        """Play what runs side by side, and see that nothing that one writes is another's."""
        if stage[0].meets:
            self.touched = {}
        assert len({launch.meets for launch in stage}) == 1
        for launch in stage:
            # Each replica has a thread, or is on a stream.
            side = launch.backend if self.streams else launch.replica
            new = Touched([], [])
            for phase in launch.phases:
                self.play(phase, new)
            assert all(n.device.backend.memory == launch.backend.memory for n in launch.nodes())
            for sends, sums in self.running:
                assert not touch(new.writes, [*sends, *sums])
                assert not touch(new.reads, sums)
            for other, theirs in self.touched.items():
                if side != other:
                    assert not touch(new.writes, [*theirs.reads, *theirs.writes])
                    assert not touch(new.reads, theirs.writes)
            known = self.touched.setdefault(side, Touched([], []))
            known.reads.extend(new.reads)
            known.writes.extend(new.writes)

    def play(self, phase: Any, touched: Touched) -> None:
        if isinstance(phase, Guard):
            assert not self.variables_written, "a variable is written before it is sure"
            for value in phase.values:
                self.read(value)
        elif isinstance(phase, FusedGroup):
            assert all(node.output.size == phase.size for node in phase.nodes)
            play = self.one_kernel if self.streams else self.in_pieces
            play(phase.nodes, touched)
        elif self.streams:
            self.kernel(phase.nodes, touched)
        else:
            for node in phase.nodes:
                self.kernel([node], touched)

    def sum(self, collective: Any) -> None:
        """Begin an all-reduce, which runs until something waits for it."""
        touched = Touched([], [])
        for rank, node in enumerate(collective.nodes):
            for value in node.inputs:
                self.read(value)
            send, total = self.place_of(node.inputs[rank]), self.place_of(node.output)
            assert total is not None
            assert send == total or not total.overlaps(send)
            touched.reads.extend([send] if send is not None else [])
            touched.writes.append(total)
        # Those before it end before it begins: they are on the same streams.
        for place, node in zip(touched.writes, collective.nodes, strict=True):
            self.own(place, node.output)
        self.running.append(touched)

    def one_kernel(self, nodes: Sequence[Node], touched: Touched) -> None:
        """Play a fused group: every thread reads its elements and then writes them."""
        made: set[Value] = set()
        outputs = [node.output for node in nodes if node.output not in self.plan.locals]
        places = [self.place_of(output) for output in outputs]
        for node in nodes:
            for value in node.inputs:
                if value.base in made:  # It is there element by element, and not as a whole.
                    assert value.whole
                    assert value.size == node.output.size
                    continue
                self.read(value)
                place = self.place_of(value)
                for output, target in zip(outputs, places, strict=True):
                    if target is not None and target.overlaps(place):
                        assert place == target, "a thread writes what another one may read later"
                        assert value.spec.dtype.itemsize == output.spec.dtype.itemsize
                if place is not None:
                    touched.reads.append(place)
            made.add(node.output)
        for i, place in enumerate(places):
            assert place is not None
            assert not any(place.overlaps(other) for other in places[:i])
            self.write(place, outputs[i], touched)

    def in_pieces(self, nodes: Sequence[Node], touched: Touched) -> None:
        """Play a fused group in two pieces."""
        for half in (0, 1):
            for node in nodes:
                out = self.place_of(node.output)
                for i, value in enumerate(node.inputs):
                    self.read(value, half if value.spec.shape else None)
                    self.check_alias(node, i, self.place_of(value), out)
                if out is not None:
                    self.write(out.half(half), node.output, touched)

    def kernel(self, nodes: Sequence[Node], touched: Touched) -> None:
        """Play another kernel: what it writes is nothing that it reads, but where the op says so.

        Several nodes are computed at once; what they pass to each other is none of their inputs.
        """
        scratch = [self.located(b) for n in nodes for _, b in self.plan.scratch.get(n, ())]
        outs = [self.place_of(node.output) for node in nodes]
        made = {node.output for node in nodes}
        for node in nodes:
            inputs = [*node.inputs, *([self.counters[node]] if node in self.counters else [])]
            for i, value in enumerate(inputs):
                if value.base in made:
                    assert value.whole
                    continue
                self.read(value)
                place = self.place_of(value)
                for out in outs:
                    assert len(nodes) == 1 or out is None or not out.overlaps(place)
                    self.check_alias(node, i, place, out)
                if place is not None:
                    touched.reads.append(place)
                    assert not any(each.overlaps(place) for each in scratch)
        for i, place in enumerate(scratch):
            assert not any(place.overlaps(other) for other in (*outs, *scratch[:i]))
            self.write(place, object(), touched)
        for node, out in zip(nodes, outs, strict=True):
            if out is not None and joins_rows(node.op, node.attrs):
                self.join(node, out, touched)
            elif out is not None:
                self.write(out, node.output, touched)

    def check_alias(self, node: Node, number: int, place: Place | None, out: Place | None) -> None:
        """See that a result is not written over what it is computed from, unless it may be."""
        if out is None or not out.overlaps(place) or joins_rows(node.op, node.attrs):
            return
        assert place == out, "a result is written over a part of what it is computed from"
        assert number in node.op.may_alias

    def join(self, node: Node, out: Place, touched: Touched) -> None:
        """Copy the parts that are not where the result has them; the others stay readable."""
        start = out.start
        for value in node.inputs:
            part = Place(out.memory, start, start + value.nbytes)
            if self.place_of(value) == part:
                for base, wholes in self.parts.items():
                    if self.id_of(value.base) in wholes or base is value.base:
                        wholes.add(self.id_of(node.output))
                self.parts.setdefault(value.base, set()).add(self.id_of(node.output))
            else:
                touched.writes.append(part)
            start += value.nbytes
        self.variables_written |= not isinstance(out.memory, tuple)
        self.own(out, node.output)

    # ------------------------------------------------------------------ memory

    def read(self, value: Value, half: int | None = None) -> None:
        place = self.place_of(value)
        if place is not None:
            found = set(self.bytes_of(place.half(half)).tolist())
            there = {self.id_of(value.base), *self.parts.get(value.base, ())}
            assert found <= there, f"{value.spec} is not there"

    def write(self, place: Place, thing: Any, touched: Touched) -> None:
        if not isinstance(place.memory, tuple):
            self.variables_written = True
        touched.writes.append(place)
        self.own(place, thing)

    def own(self, place: Place | None, thing: Any) -> None:
        if place is not None:
            self.bytes_of(place)[:] = self.id_of(thing)

    def bytes_of(self, place: Place) -> np.ndarray:
        owners = self.owners.get(place.memory)
        if owners is None:
            storages = [base.storage for base in self.bases if base.storage is not None]
            storages += [variable.pinned()[0] for variable, _ in self.graph.writes]
            sizes = {id(storage): storage.array.nbytes for storage in storages} | self.plan.arenas
            owners = self.owners[place.memory] = np.zeros(sizes[place.memory], np.int64)
        assert 0 <= place.start <= place.stop <= len(owners)
        return owners[place.start : place.stop]

    @cached_property
    def bases(self) -> set[Value]:
        """Return all base values that are read."""
        values = [each for node in self.graph.nodes for each in node.inputs]
        values += [*self.graph.outputs, *self.graph.guards]
        values += [value for _, value in self.graph.writes]
        return {value.base for value in values}

    def place_of(self, value: Value) -> Place | None:
        """Return where a value is; None where it is a constant, or exists in pieces alone."""
        base, first = value.base, value.offset * value.spec.dtype.itemsize
        if base.constant is not None or base in self.plan.locals:
            return None
        if base.storage is not None:
            return Place(id(base.storage), first, first + value.nbytes)
        whole = self.located(self.plan.blocks[base])
        return Place(whole.memory, whole.start + first, whole.start + first + value.nbytes)

    def place_of_variable(self, variable: Any, value: Value) -> Place:
        storage, offset = variable.pinned()
        start = offset * storage.spec.dtype.itemsize
        return Place(id(storage), start, start + value.nbytes)

    def located(self, block: Any) -> Place:
        start, root = block.place, block
        while root.parent is not None:
            root = root.parent
            start += root.place
        key = id(root.storage) if root.storage is not None else (root.device, root.replica)
        return Place(key, start, start + block.nbytes)

    def id_of(self, thing: Any) -> int:
        return self.ids.setdefault(thing, len(self.ids) + 1)
