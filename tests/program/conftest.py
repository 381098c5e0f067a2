"""What the tests of programs share: replicas' lanes, patience that ends, a checker of plans."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

from mirrored.ops.random import ShardPosition, shard_position
from mirrored.program.graph import Graph, joins_rows
from mirrored.program.memory import make_plan
from mirrored.program.schedule import Guard, Lanes, Region, make_schedule


@pytest.fixture
def in_lane() -> Callable[[int], AbstractContextManager[None]]:
    """Return ``in_lane(number)``: a context whose ops belong to that replica."""
    run = object()
    return lambda number: shard_position(ShardPosition(run, number))


@pytest.fixture
def ends() -> Callable[..., Any]:
    """Return ``ends(function)``: call it, and fail where it waits for ever."""

    def call(function: Callable[[], Any], seconds: float = 20) -> Any:
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append((function(), None))
            except BaseException as error:
                outcome.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
        assert not thread.is_alive(), "it waits for ever"
        result, error = outcome.pop()
        if error is not None:
            raise error
        return result

    return call


@pytest.fixture(autouse=True)
def no_stray_thread() -> Iterator[None]:
    """Fail where a test leaves a thread behind."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert not set(threading.enumerate()) - before


Range = tuple[Any, int, int]


class PlanChecker:
    """Plays a plan through, byte by byte, and fails where a value is read that is not there.

    It knows nothing of how long values live: it notes whose each byte is, and looks before every
    read. Regions are played in two pieces; replicas that run side by side must not touch each
    other's memory.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.schedule = make_schedule(graph)
        self.plan = make_plan(graph, self.schedule)
        self.owners: dict[Any, np.ndarray] = {}
        self.ids: dict[Any, int] = {}
        self.parts: dict[Any, list[int]] = {}  # Of which joined values a value is a part.
        for key, nbytes in self.plan.arenas.items():
            self.owners[key] = np.zeros(nbytes, np.int64)

    def check(self) -> None:
        """Play two steps: what is written once must last."""
        for value in self.plan.blocks:
            if value.data is not None:
                self.write(value, self.range_of(value))
        for _ in range(2):
            self.homes_written = False
            self.begin()
            for phase in self.schedule.phases:
                self.play(phase)
            for value in self.graph.outputs:
                self.read(value)
            for variable, value in self.plan.commits:
                self.read(value)
                home, offset = variable.pinned()
                start = offset * home.spec.dtype.itemsize
                self.write(value, (id(home), start, start + value.nbytes))
            for variable, value in self.graph.writes:
                home, offset = variable.pinned()
                start = offset * home.spec.dtype.itemsize
                owners = self.owners[id(home)][start : start + value.nbytes]
                assert (owners == self.id_of(value.base)).all(), "a variable has not its new value"

    def begin(self) -> None:
        for value in self.graph.inputs:
            self.write(value, self.range_of(value))
        nodes = [*self.graph.inputs, *self.graph.outputs, *self.graph.guards]
        nodes += [each for node in self.graph.nodes for each in node.inputs]
        nodes += [value for _, value in self.graph.writes]
        homes = {value.base for value in nodes if value.base.home is not None}
        for variable, _ in self.graph.writes:
            home, _ = variable.pinned()
            self.owners.setdefault(id(home), np.zeros(home.storage.nbytes, np.int64))
        for base in homes:
            self.owners[id(base.home)] = np.full(base.nbytes, self.id_of(base), np.int64)

    def play(self, phase: Any) -> None:
        if isinstance(phase, Guard):
            assert not self.homes_written, "a variable is written before the step is sure to end"
            for value in phase.values:
                self.read(value)
        elif isinstance(phase, Region):
            for half in (0, 1):
                for node in phase.nodes:
                    self.run(node, half)
        elif isinstance(phase, Lanes):
            touched = {lane: self.run_all(nodes) for lane, nodes in phase.nodes.items()}
            for lane, (_, writes) in touched.items():
                for other, (reads, more) in touched.items():
                    if lane != other:
                        assert not any(overlap(a, b) for a in writes for b in [*reads, *more])
        else:
            self.run_all(phase.nodes)

    def run_all(self, nodes: Any) -> tuple[list[Range], list[Range]]:
        reads, writes = [], []
        for node in nodes:
            self.run(node)
            reads += [self.range_of(value) for value in node.inputs]
            writes += [self.range_of(node.output), *self.scratch(node)]
        return [each for each in reads if each], [each for each in writes if each]

    def run(self, node: Any, half: int | None = None) -> None:
        """Read a node's inputs, use its workspace, and write its result; or half of each."""
        whole = self.range_of(node.output)
        out = halved(whole, half)
        for i, value in enumerate(node.inputs):
            self.read(value, half if value.spec.shape else None)
            place = self.range_of(value)
            if not overlap(place, whole) or joins_rows(node.op, node.attrs):
                continue
            assert place == whole, "a result is written over a part of what it is computed from"
            assert i in node.op.may_alias
        for i, scratch in enumerate(self.scratch(node)):
            assert not overlap(scratch, whole)
            self.write((node, i), scratch)
            for value in node.inputs:
                self.read(value)
        if whole and not isinstance(whole[0], tuple):
            self.homes_written = True
        self.write(node.output, out)
        if joins_rows(node.op, node.attrs):
            self.join(node)

    def join(self, node: Any) -> None:
        """Note which inputs stay readable: those that are where the result has them."""
        place = self.range_of(node.output)
        if place is None:
            return
        key, start, _ = place
        for value in node.inputs:
            if self.range_of(value) == (key, start, start + value.nbytes):
                self.parts.setdefault(value.base, [])
                for base, wholes in self.parts.items():
                    if base is value.base or self.id_of(value.base) in wholes:
                        wholes.append(self.id_of(node.output))
            start += value.nbytes

    def read(self, value: Any, half: int | None = None) -> None:
        place = halved(self.range_of(value), half)
        if place is not None:
            key, start, stop = place
            owners = self.owners[key][start:stop]
            there = [self.id_of(value.base), *self.parts.get(value.base, ())]
            assert np.isin(owners, there).all(), f"{value.spec} is not there"

    def write(self, value: Any, place: Range | None) -> None:
        if place is not None:
            key, start, stop = place
            assert 0 <= start <= stop <= len(self.owners[key])
            self.owners[key][start:stop] = self.id_of(getattr(value, "base", value))

    def scratch(self, node: Any) -> list[Range]:
        return [located(block) for _, block in self.plan.scratch.get(node, ())]

    def range_of(self, value: Any) -> Range | None:
        """Return where a value is; None where it is a constant or exists in pieces alone."""
        base, itemsize = value.base, value.spec.dtype.itemsize
        if base.constant is not None or base in self.plan.locals:
            return None
        first = value.offset * itemsize
        if base.home is not None:
            return id(base.home), first, first + value.nbytes
        key, start, _ = located(self.plan.blocks[base])
        return key, start + first, start + first + value.nbytes

    def id_of(self, thing: Any) -> int:
        return self.ids.setdefault(thing, len(self.ids) + 1)


def located(block: Any) -> Range:
    """Return which memory a block is in, where it begins and where it ends."""
    start, root = block.place, block
    while root.parent is not None:
        root = root.parent
        start += root.place
    key = id(root.home) if root.home is not None else (root.device, root.lane)
    return key, start, start + block.nbytes


def overlap(a: Range | None, b: Range | None) -> bool:
    return a is not None and b is not None and a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def halved(place: Range | None, half: int | None) -> Range | None:
    """Return the first or the second half of the elements, which are of eight bytes at most."""
    if place is None or half is None:
        return place
    key, start, stop = place
    middle = start + (stop - start) // 16 * 8
    return (key, start, middle) if half == 0 else (key, middle, stop)


@pytest.fixture
def check_plan() -> Callable[[Graph], None]:
    """Return ``check_plan(graph)``, which plans the graph's memory and plays it through."""
    return lambda graph: PlanChecker(graph).check()
