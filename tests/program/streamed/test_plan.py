"""Where the values of a streamed program live: no two that are needed at one time overlap.

A checker plays each plan through byte by byte; it knows only which kernels may run side by side.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import mirrored as mr
from mirrored import ops
from mirrored.ops.hooks import active_recorder
from mirrored.program.graph import Graph, Node, Value, joins_rows
from mirrored.program.schedule import Guard, Region
from mirrored.program.streamed.plan import make_streamed_plan
from mirrored.program.streamed.stages import make_stages

X = np.zeros((4, 3), np.float32)


class Place(NamedTuple):
    """A piece of memory: which, where it begins and where it ends, in bytes."""

    memory: Any
    start: int
    stop: int

    def overlaps(self, other: "Place | None") -> bool:
        if other is None or self.memory != other.memory:
            return False
        return max(self.start, other.start) < min(self.stop, other.stop)


class Checker:
    """Plays a plan through, twice, and fails where a value is read that is not there.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.schedule = make_stages(graph)
        self.plan, self.feeds, _ = make_streamed_plan(graph, self.schedule)
        self.owners: dict[Any, np.ndarray] = {}
        self.ids: dict[Any, int] = {}
        self.parts: dict[Any, set[int]] = {}  # As parts of which joined values a value is kept.
        # What each stream touched since all of them met, and what is being summed beside them.
        self.touched: dict[Any, tuple[list[Place], list[Place]]] = {}
        self.running: list[tuple[list[Place], list[Place]]] = []

    def check(self) -> None:
        for value in self.plan.blocks:
            if value.data is not None:
                self.write(value)
        for _ in range(2):
            for value in (*self.graph.inputs, *self.schedule.counters.values()):
                self.write(value)
            self.fill_homes()
            asked = joined = 0
            for tracks in self.schedule.stages:
                if tracks[0].collective is not None:
                    self.sum(tracks[0].collective)
                    asked += 1
                    continue
                self.running = self.running[max(tracks[0].waits - joined, 0) :]
                joined = max(joined, tracks[0].waits)
                assert len(self.running) == asked - joined
                self.stage(tracks)
            self.running = []
            for value in self.graph.outputs:
                self.read(value)
            for variable, value in self.plan.commits:
                self.read(value)
                home, offset = variable.pinned()
                start = offset * home.spec.dtype.itemsize
                self.own(Place(id(home), start, start + value.nbytes), value.base)
            for variable, value in self.graph.writes:
                home, offset = variable.pinned()
                start = offset * home.spec.dtype.itemsize
                bytes_of = self.bytes_of(Place(id(home), start, start + value.nbytes))
                assert (bytes_of == self.id_of(value.base)).all(), "not the new value"

    def fill_homes(self) -> None:
        values = [each for node in self.graph.nodes for each in node.inputs]
        for base in {value.base for value in (*values, *self.graph.outputs)}:
            if base.home is not None:
                self.own(Place(id(base.home), 0, base.nbytes), base)

    def stage(self, tracks: Any) -> None:
        """Play what runs side by side, and see that nothing that one writes is another's."""
        if tracks[0].meets:
            self.touched = {}
        assert len({track.meets for track in tracks}) == 1
        for track in tracks:
            reads: list[Place] = []
            writes: list[Place] = []
            for phase in track.phases:
                if isinstance(phase, Guard):
                    for value in phase.values:
                        self.read(value)
                    continue
                if isinstance(phase, Region):
                    self.chain(phase.nodes, reads, writes)
                else:
                    self.kernel(phase.nodes, reads, writes)
            for sends, sums in self.running:
                assert not any(a.overlaps(b) for a in writes for b in (*sends, *sums))
                assert not any(a.overlaps(b) for a in reads for b in sums)
            for all_of, new in zip(
                self.touched.setdefault(track.backend, ([], [])), (reads, writes), strict=True
            ):
                all_of += new
        for i, (_, writes) in self.touched.items():
            for j, (reads, more) in self.touched.items():
                if i != j:
                    assert not any(a.overlaps(b) for a in writes for b in (*reads, *more))

    def sum(self, collective: Any) -> None:
        """Begin an all-reduce, which runs until something waits for it."""
        sends, sums = [], []
        for rank, node in enumerate(collective.nodes):
            for value in node.inputs:
                self.read(value)
            send, total = self.place_of(node.inputs[rank]), self.place_of(node.output)
            assert total is not None
            assert send == total or not total.overlaps(send)
            sends += [send] if send is not None else []
            sums.append(total)
        # Those before it end before it begins: they are on the same streams.
        for place, node in zip(sums, collective.nodes, strict=True):
            self.own(place, node.output)
        self.running.append((sends, sums))

    def chain(self, nodes: list[Node], reads: list[Place], writes: list[Place]) -> None:
        """Play a chain: every thread reads its elements and then writes them, in any order."""
        made = {node.output for node in nodes}
        inputs = [v for node in nodes for v in node.inputs if v.base not in made]
        outputs = [node.output for node in nodes if node.output not in self.plan.locals]
        places = [self.place_of(output) for output in outputs]
        for value in inputs:
            self.read(value)
            place = self.place_of(value)
            for output, target in zip(outputs, places, strict=True):
                if target is not None and target.overlaps(place):
                    assert place == target, "a thread writes what another one may read later"
                    assert value.spec.dtype.itemsize == output.spec.dtype.itemsize
            if place is not None:
                reads.append(place)
        for i, place in enumerate(places):
            assert place is not None
            assert not any(place.overlaps(other) for other in places[:i])
            self.own(place, outputs[i])
            writes.append(place)
        for node in nodes:
            assert all(v.base not in self.plan.locals or v.base in made for v in node.inputs)

    def kernel(self, nodes: list[Node], reads: list[Place], writes: list[Place]) -> None:
        """Play other kernels: nothing that they write is what they read."""
        inputs = [value for node in nodes for value in node.inputs]
        inputs += [self.schedule.counters[node] for node in nodes if node.op.random]
        targets = [self.place_of(node.output) for node in nodes]
        for node in nodes:
            blocks = [block for _, block in self.plan.scratch.get(node, ())]
            targets += [self.located(block) for block in blocks]
        joining = any(joins_rows(node.op, node.attrs) for node in nodes)
        for value in inputs:
            self.read(value)
            place = self.place_of(value)
            if place is None:
                continue
            reads.append(place)
            for target in targets:
                alike = len(nodes) == 1 and 0 in nodes[0].op.may_alias and place == target
                assert joining or alike or target is None or not target.overlaps(place)
        for place, node in zip(targets, (*nodes, *[None] * len(targets)), strict=False):
            if place is not None:
                writes.append(place)
                self.own(place, node.output if node is not None else object())
        for node in nodes:
            if joins_rows(node.op, node.attrs):
                self.join(node)

    def join(self, node: Node) -> None:
        """Note that those inputs stay readable which are where the result has them."""
        place = self.place_of(node.output)
        assert place is not None
        start = place.start
        for value in node.inputs:
            if self.place_of(value) == Place(place.memory, start, start + value.nbytes):
                for base, wholes in self.parts.items():
                    if self.id_of(value.base) in wholes or base is value.base:
                        wholes.add(self.id_of(node.output))
                self.parts.setdefault(value.base, set()).add(self.id_of(node.output))
            start += value.nbytes

    def read(self, value: Value) -> None:
        place = self.place_of(value)
        if place is not None:
            there = [self.id_of(value.base), *self.parts.get(value.base, ())]
            assert np.isin(self.bytes_of(place), there).all(), f"{value.spec} is not there"

    def write(self, value: Value) -> None:
        place = self.place_of(value)
        assert place is not None
        self.own(place, value)

    def own(self, place: Place, thing: Any) -> None:
        self.bytes_of(place)[:] = self.id_of(thing)

    def bytes_of(self, place: Place) -> np.ndarray:
        size = 1 << 14
        assert 0 <= place.start <= place.stop <= size
        return self.owners.setdefault(place.memory, np.zeros(size, np.int64))[
            place.start : place.stop
        ]

    def place_of(self, value: Value) -> Place | None:
        """Return where a value is; None where it is a constant or passes in registers."""
        base, first = value.base, value.offset * value.spec.dtype.itemsize
        if base.constant is not None or base in self.plan.locals:
            return None
        if base.home is not None:
            return Place(id(base.home), first, first + value.nbytes)
        whole = self.located(self.plan.blocks[base])
        return Place(whole.memory, whole.start + first, whole.start + first + value.nbytes)

    def located(self, block: Any) -> Place:
        start, root = block.place, block
        while root.parent is not None:
            root = root.parent
            start += root.place
        if root.home is not None:
            return Place(id(root.home), start, start + block.nbytes)
        nbytes = self.plan.arenas[root.device, root.lane]
        assert start + block.nbytes <= nbytes
        return Place((root.device, root.lane), start, start + block.nbytes)

    def id_of(self, thing: Any) -> int:
        return self.ids.setdefault(thing, len(self.ids) + 1)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("parts", [(1,), (2,), (4,), (1, 1), (2, 1)], ids=str)
def test_random_graphs(parts: tuple[int, ...], guarded: bool, cards: Any) -> None:
    names = cards.make(*parts)
    for seed in range(12):
        Checker(cards.random(seed, replicas=len(names), guarded=guarded)).check()


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2, 1)], ids=str)
def test_random_graphs_with_sums_over_cards(
    parts: tuple[int, ...], guarded: bool, cards: Any
) -> None:
    names = cards.make(*parts)
    connection = cards.unconnected()
    for seed in range(16):
        graph = cards.random(seed, len(names), guarded=guarded, connection=connection)
        assert graph.collectives
        Checker(graph).check()


@pytest.mark.parametrize("guarded", [False, True])
def test_random_graphs_without_replicas(guarded: bool, cards: Any) -> None:
    cards.make(1)
    for seed in range(40):
        Checker(cards.random(seed, replicas=0, guarded=guarded)).check()


def test_what_passes_in_a_chain_has_no_memory(cards: Any) -> None:
    cards.make(1)
    graph = cards.record(lambda x: [ops.tanh(x) * 2.0 + 1.0], X)
    plan, *_ = make_streamed_plan(graph, make_stages(graph))
    made = [node.output for node in graph.nodes]
    assert plan.locals == set(made[:-1])
    assert made[-1] in plan.blocks


def test_blocks_begin_at_256_bytes(cards: Any) -> None:
    cards.make(1)
    x = np.zeros((5,), np.float32)
    graph = cards.record(lambda x, y: [ops.softmax(x) - y, ops.reduce_sum(x), y[1:] * 2.0], x, x)
    plan, feeds, _ = make_streamed_plan(graph, make_stages(graph))
    roots = [block for block in plan.blocks.values() if block.home is None]
    assert all(block.place % 256 == 0 for block in roots)
    assert {place for feed in feeds for place in feed.places.values()} == {0, 256}


def test_what_is_fed_lies_together(cards: Any) -> None:
    """One copy a replica brings its batch, and the numbers of its draws."""
    cards.make(2)

    def function(x: Any, y: Any, z: Any) -> list[Any]:
        results = []
        for number, each in enumerate((x, y)):
            with cards.replica(number):
                results.append(each * mr.random.normal((4, 3)))
        return [*results, z + 1.0]

    graph = cards.record(function, X, X, X[0], replicas=2)
    schedule = make_stages(graph)
    plan, feeds, _ = make_streamed_plan(graph, schedule)
    assert [(feed.device.name, feed.lane) for feed in feeds] == [
        ("/device:GPU:0", 0),
        ("/device:GPU:1", 1),
        ("/device:GPU:0", -1),
    ]
    values = [*graph.inputs, *schedule.counters.values()]
    assert {value for feed in feeds for value in feed.places} == set(values)
    for feed in feeds:
        assert feed.block.nbytes == 256 * len(feed.places)
        for value, place in feed.places.items():
            block = plan.blocks[value]
            assert (block.root, block.place) == (feed.block, place)
            assert block.nbytes == value.nbytes


@pytest.mark.parametrize("guarded", [False, True])
def test_who_writes_where_variables_live(guarded: bool, cards: Any) -> None:
    """Behind a guard chains alone do, for only those can be told to write nothing."""
    cards.make(1)
    with mr.device("GPU:0"):
        chained, computed, early = (mr.Variable(X) for _ in range(3))

    def function(x: Any) -> list[Any]:
        early.assign(ops.tanh(x))
        recorder: Any = active_recorder()
        if guarded:
            recorder.require_finite((ops.reduce_sum(x),))
        chained.assign_sub(x * 0.5)
        computed.assign(ops.softmax(chained * 2.0))
        return [x]

    graph = cards.record(function, X)
    plan, *_ = make_streamed_plan(graph, make_stages(graph))
    homed = {
        value.node.op.name
        for value, block in plan.blocks.items()
        if block.home is not None and value.node is not None
    }
    left = {id(variable) for variable, _ in plan.commits}
    assert "AssignSubVariableOp" in homed
    assert ("Softmax" in homed) != guarded
    assert (id(computed) in left) == guarded
    assert id(chained) not in left
    Checker(graph).check()


def test_variables_that_are_summed_are_written_behind_the_gate(cards: Any) -> None:
    cards.make(1, 1)
    connection = cards.unconnected()
    variables = []
    for name in connection.names:
        with mr.device(name):
            variables.append(mr.Variable(X))

    def function(x: Any) -> list[Any]:
        recorder: Any = active_recorder()
        values = [variable.read_value() for variable in variables]
        total = recorder.all_reduce(values, connection, what="values", timeout=1.0)[0]
        recorder.require_finite((ops.reduce_sum(x),))
        variables[0].assign_sub(x * 2.0)
        return [total]

    graph = cards.record(function, X)
    checker = Checker(graph)
    checker.check()
    assert checker.plan.commits == []  # It is written in place: no sum goes on by then.
