"""From the phases of a schedule to the calls that compute them on the program's arrays.

What a kernel does in Python is done here, once.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirrored.ops.random import NextDraw
from mirrored.ops.registry import Op, implementation
from mirrored.program.arrays import Arrays
from mirrored.program.binding import Call, bind
from mirrored.program.graph import JOINT, Node, Value, joins_rows
from mirrored.program.regions import pieces
from mirrored.program.schedule import Guard, Joint, Lanes, Region, Schedule

# A write that is left for the end. It is not in the table: eager variables are written by `commit`.
ASSIGN = Op(name="AssignVariableOp", infer=lambda x: x)


class Draws:
    """The random draws of one step: taken on one thread, before the step begins."""

    def __init__(self) -> None:
        """Begin with none."""
        # Each with its number, by which they are ordered, and the place of what it draws.
        self._sources: list[tuple[int, int, NextDraw]] = []
        self._drawn: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._sources)

    def add(self, source: NextDraw, number: int) -> Callable[[], Any]:
        """Add a draw, and return what gives key and number of this step's.

        Args:
            source: Where it comes from.
            number: Draws are taken in the order of their numbers.
        """
        place, drawn = len(self._sources), self._drawn
        bisect.insort(self._sources, (number, place, source))
        drawn.append(None)
        return lambda: drawn[place]

    @property
    def drawn(self) -> list[Any]:
        """Key and number of each draw of this step, in the order in which they were added."""
        return self._drawn

    def mark(self) -> Callable[[], None]:
        """Return what takes back all that is taken from now on."""
        marks = [source.mark() for _, _, source in self._sources]

        def back() -> None:
            for mark in marks:
                mark()

        return back

    def take(self) -> None:
        """Take the next step's draws, in the order in which the function makes them."""
        run = object()
        for _, place, source in self._sources:
            self._drawn[place] = source(run)


@dataclass(slots=True)
class BoundPhase:
    """The calls of one phase; exactly one of the attributes is set.

    Attributes:
        lanes: For each replica its calls.
        calls: Calls of one thread.
        shards: For each thread, for each of its pieces, the calls.
        check: Whether the program goes on.
    """

    lanes: dict[int, list[Call]] | None = None
    calls: list[Call] | None = None
    shards: list[list[list[Call]]] | None = None
    check: Callable[[], bool] | None = None


@dataclass(slots=True)
class Binder:
    """Binds the phases of one program.

    Attributes:
        arrays: Where the values are.
        threads: How many threads share regions.
        validates: Whether ops look at their inputs' values.
        draws: The random draws that were met.
    """

    arrays: Arrays
    threads: int
    validates: bool
    draws: Draws = field(default_factory=Draws)

    def bind(self, schedule: Schedule) -> list[BoundPhase]:
        """Return the phases with their calls, and the writes that are left at the end."""
        phases = [self._phase(phase) for phase in schedule.phases]
        commits = [self._commit(*each) for each in self.arrays.plan.commits]
        return [*phases, BoundPhase(calls=commits)] if commits else phases

    def _phase(self, phase: Lanes | Joint | Guard | Region) -> BoundPhase:
        if isinstance(phase, Guard):
            return BoundPhase(check=self._check(phase.values))
        if isinstance(phase, Region):
            return BoundPhase(shards=[self._shard(phase, i) for i in range(self.threads)])
        if isinstance(phase, Joint):
            return BoundPhase(calls=self._calls(phase.nodes))
        return BoundPhase(lanes={lane: self._calls(nodes) for lane, nodes in phase.nodes.items()})

    def _calls(self, nodes: Sequence[Node]) -> list[Call]:
        calls = []
        for node in nodes:
            calls += [call._replace(node=node) for call in self._node_calls(node)]
        return calls

    def _node_calls(self, node: Node) -> list[Call]:
        if joins_rows(node.op, node.attrs):
            return self._join_calls(node)
        inputs = tuple(self.arrays.of(value) for value in node.inputs)
        out, attrs, backend = self.arrays.of(node.output), dict(node.attrs), node.device.backend
        if node in self.arrays.plan.scratch:
            attrs["workspace"] = self.arrays.workspace(node)
        if node.op.elementwise and not any(each.ndim for each in (out, *inputs)):
            # NumPy takes less time for one element in a row than for a number without an axis.
            out, inputs = out.reshape(1), tuple(each.reshape(1) for each in inputs)
        kernel = _kernel(node)
        if node.op.random:
            draw = self.draws.add(attrs.pop("draw"), node.output.number)
            return [Call(_random(kernel, backend.xp, out, draw, attrs))]
        calls = bind(backend.xp, kernel, out, inputs, **attrs)
        if self.validates and node.op.validate is not None:
            calls.insert(0, Call(_later(node.op.validate, inputs, node.attrs)))
        return calls

    def _join_calls(self, node: Node) -> list[Call]:
        """Return the copies of those parts that are not computed in their place."""
        copyto, plan = node.device.backend.xp.copyto, self.arrays.plan
        out, calls, start = self.arrays.of(node.output), [], 0
        for value in node.inputs:
            stop = start + value.spec.shape[0]
            if not plan.is_in_place(value, node.output, start):
                calls.append(Call(copyto, (out[start:stop], self.arrays.of(value))))
            start = stop
        return calls

    def _commit(self, variable: Any, value: Value) -> Call:
        home, offset = variable.pinned()
        target = home.storage.array[offset : offset + value.size].reshape(value.spec.shape)
        node = Node(ASSIGN, (value,), {}, Value(value.spec, home.device), JOINT)
        return Call(home.device.backend.xp.copyto, (target, self.arrays.of(value)), node=node)

    def _check(self, values: Sequence[Value]) -> Callable[[], bool]:
        read = [self.arrays.of(value).reshape(-1)[:1].item for value in values]
        if len(read) > 1:
            return lambda: math.isfinite(sum(item() for item in read))
        only, isfinite = read[0], math.isfinite
        return lambda: isfinite(only())

    def _shard(self, region: Region, thread: int) -> list[list[Call]]:
        """Return the calls of each piece of one thread's shard."""
        shard = []
        for begin, end in pieces(region.size, self.threads, thread):
            calls = []
            for node in region.nodes:
                out, *inputs = (
                    self.arrays.piece(value, thread, begin, end)
                    for value in (node.output, *node.inputs)
                )
                made = bind(node.device.backend.xp, _kernel(node), out, tuple(inputs), **node.attrs)
                calls += [call._replace(node=node) for call in made]
            shard.append(calls)
        return shard


def _kernel(node: Node) -> Any:
    return implementation(node.op, node.device.backend).kernel


def _random(
    kernel: Any, xp: Any, out: Any, draw: Callable[[], Any], attrs: dict[str, Any]
) -> Callable[[], None]:
    attrs.pop("key")

    def run() -> None:
        key, number = draw()
        kernel(xp, out, key=key, draw=number, **attrs)

    return run


def _later(function: Any, args: tuple[Any, ...], attrs: Any) -> Callable[[], None]:
    return lambda: function(*args, **attrs)
