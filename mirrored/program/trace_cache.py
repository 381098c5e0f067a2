"""A cache of recorded functions by the kind of call, of limited size.

A loop with a new kind of call in each iteration would record again and again: a warning says so.
"""

import contextlib
import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mirrored._interrupt import InterruptGuard
from mirrored._logging import logger
from mirrored.devices import hold_devices
from mirrored.errors import OutOfRangeError
from mirrored.ops.tensor import Tensor
from mirrored.program.buffers import Arenas
from mirrored.program.dataflow import Graph
from mirrored.program.executor import make_program
from mirrored.program.function_arguments import Results
from mirrored.program.memory_planner import MemoryPlan
from mirrored.program.program import Program
from mirrored.program.replay import Feed, Report
from mirrored.program.schedule import Schedule
from mirrored.program.thread_pool import ThreadPool
from mirrored.program.variable_access import note_commit

if TYPE_CHECKING:
    from mirrored.program.executor import Runnable
    from mirrored.program.streamed import Planned

_MOST = 64
_WARN_AT = 16
_NOTHING_TO_SPOIL = contextlib.nullcontext()


@dataclass(eq=False, slots=True, weakref_slot=True)
class Trace:
    """A recorded function, and the program that runs it once it is asked for.

    Attributes:
        graph: What it computes.
        replicas: How many replicas run in it.
        results: What it returns; None where a dataset ends in it: it does what comes before.
        kept: What its key is made of, so that no other object takes over an identity.
        outline: The arguments of a call that it is for, with slots for tensors, or None.
        arenas: Memory that it shares with others, of which one runs at a time; None: its own.
        own: The ids of the variables that only its arguments lead to.
        watched: The variables that it is for and does not keep: without one of them it is gone.
    """

    graph: Graph
    replicas: int
    results: Results | None = None
    kept: list[Any] = field(default_factory=list)
    outline: Any = ((), {})
    arenas: Arenas | None = None
    own: frozenset[int] = frozenset()
    watched: "list[weakref.ref[Any]]" = field(default_factory=list)
    _program: "Runnable | None" = None
    _planned: "Planned | None" = None

    def program(self, arenas: Arenas | None = None) -> "Runnable":
        """Return the program, with its memory taken.

        Args:
            arenas: Memory that is shared with others and given back; None: its own.

        Raises:
            ResourceExhaustedError: A device has no room for it.
        """
        if arenas is not None and self._program is not None and not self._program.take_memory():
            self.let_go()
        if self._program is None:
            strategy = self.graph.strategy
            executor = "auto" if strategy is None else strategy.executor
            self._program = make_program(self.graph, self.replicas, executor, arenas, self._planned)
        return self._program

    def run(
        self,
        steps: int,
        feed: Feed = None,
        report: Report | None = None,
        arenas: Arenas | None = None,
    ) -> bool:
        """Run a number of steps on the threads of its strategy; see `Program.run`."""
        program = self.program(arenas)
        if self.graph.lanes and feed is not None:
            from mirrored.program.lanes import by_lane  # Few strategies have them.

            feed = by_lane(self.graph, feed)
        return program.run(steps, feed, report, self._pool(program))

    def call(self, sources: Sequence[Any]) -> Any:
        """Run once, and return the results as tensors of their own.

        Args:
            sources: What is fed; see `Program.call`.

        Raises:
            OutOfRangeError: A dataset ends in it: what comes before that is done.
        """
        graph, results = self.graph, self.results
        program = self._program if self.arenas is None else self.program(self.arenas)
        program, returned = program or self.program(), graph.outputs
        with InterruptGuard(whole=True, may_break=True) if graph.writes else _NOTHING_TO_SPOIL:
            if returned:
                kept = program.returned(sources, self._pool(program))
            else:
                program.call(sources, self._pool(program))
        if graph.writes:
            note_commit(graph.name)
        if results is None:
            raise OutOfRangeError("End of sequence")
        if results.structure is None:
            return None
        tensors = []
        for value, (array, storage) in zip(returned, kept if returned else (), strict=True):
            tensors.append(Tensor(array, storage, value.device, value.spec))
        return results.with_tensors(tensors)

    def fetch(self, sources: Sequence[Any]) -> list[Any]:
        """Run once, and return NumPy's copies of the results, which take no memory of a device.

        Args:
            sources: What is fed; see `Program.call`.
        """
        graph = self.graph
        program = self._program or self.program()
        with InterruptGuard(whole=True, may_break=True) if graph.writes else _NOTHING_TO_SPOIL:
            program.call(sources, self._pool(program))
        if graph.writes:
            note_commit(graph.name)
        pairs = zip(graph.outputs, program.outputs, strict=True)
        arrays = [value.device.backend.to_host(array) for value, array in pairs]
        return [array if array.ndim else array[()] for array in arrays]

    def _pool(self, program: "Runnable") -> ThreadPool | None:
        """Return the threads of the strategy whose replicas run in it, where it takes some."""
        strategy = self.graph.strategy
        if strategy is None or program.threads == 1:
            return None
        pool: ThreadPool = strategy.thread_pool(program.threads)
        return pool

    def memory_plan(self) -> tuple[Graph, Schedule, MemoryPlan] | None:
        """Return the graph that runs, its schedule and where its values are; None: none ran."""
        program = self._program
        if isinstance(program, Program):
            return program.graph, program.schedule, program.plan
        planned = self._planned if program is None else program.planned
        return None if planned is None else (planned.graph, planned.schedule, planned.plan.plan)

    def watch(self, variables: Sequence[Any]) -> None:
        """Be gone, with all memory, as soon as one of these variables is: others get its identity.

        Args:
            variables: The variables, of which the graph keeps none.
        """
        lose = functools.partial(_lose, weakref.ref(self))
        self.watched = [weakref.ref(variable, lose) for variable in variables]

    def variables(self) -> tuple[Any, ...]:
        """Return the variables that it keeps, in the order in which they were met."""
        variables = {id(variable): variable for variable, _, _ in self.graph.reads}
        kept = (variable for number, variable in variables.items() if number not in self.own)
        return tuple(variable for variable in kept if hasattr(variable, "trainable"))

    @property
    def is_gone(self) -> bool:
        """Whether a variable that it was for is gone."""
        return any(reference() is None for reference in self.watched)

    def let_go(self) -> None:
        """Let go of what a run left: observers, and memory that is elsewhere when taken again."""
        if isinstance(self._program, Program):
            self._program.forget_observer()
        elif self._program is not None:
            self._planned = self._program.planned
            self._program = None


class _Gone:
    """Stands for a variable that is gone, and so is where no graph expects it."""

    def pinned(self) -> None:
        """Return no place."""


def _lose(known: "weakref.ref[Trace]", _: Any) -> None:
    """Leave of a trace what is never current."""
    trace = known()
    if trace is not None:
        trace.graph = Graph(reads=[(_Gone(), None, 0)])
        trace._program = trace._planned = None


class TraceCache:
    """Traces by key; the one that was used longest ago goes when there are too many.

    Args:
        label: What messages call the function that is recorded.
        most: How many are kept.

    Attributes:
        arenas: Memory for programs that do not run at the same time.
        lock: Held while a function is recorded, and while such a program runs.
        count: The number of recordings so far.
        decisions: What its owner knows in addition to the traces, and forgets with them.
    """

    def __init__(self, label: str, most: int = _MOST) -> None:
        """Begin with none."""
        self._label = label
        self._most = most
        self._kept: OrderedDict[Hashable, Trace] = OrderedDict()
        # Most calls are like the one before: two keys are compared sooner than one is hashed.
        self._latest: tuple[Hashable, Trace] | None = None
        self.count = 0
        self.decisions: Any = None
        self._holders = 0
        self.arenas = Arenas()
        self.lock = threading.RLock()
        hold_devices(self)

    def __reduce__(self) -> Any:
        return TraceCache, (self._label, self._most)  # What is recorded does not travel.

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def __iter__(self) -> Iterator[Trace]:
        """Return an iterator over those that are kept."""
        return iter(self._kept.values())

    def find(self, key: Hashable) -> Trace | None:
        """Return the trace for a key, where there is one whose variables are where they were.

        Args:
            key: What it was recorded for.
        """
        latest = self._latest
        if latest is None or latest[0] != key:
            known = self._kept.get(key)
            if known is None:
                return None
            self._kept.move_to_end(key)
            latest = self._latest = key, known
        return latest[1] if latest[1].graph.is_current() else None

    def keep(self, key: Hashable, trace: Trace, *, recorded: bool = True) -> Trace:
        """Keep a trace, and return it.

        Args:
            key: What it was recorded for.
            trace: The trace.
            recorded: Whether it is a recording of its own.
        """
        known = self._kept.get(key)
        self._kept[key] = trace
        self._kept.move_to_end(key)
        self._latest = key, trace
        if len(self._kept) > self._most:
            for gone in [name for name, kept in self._kept.items() if kept.is_gone]:
                del self._kept[gone]
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        if not recorded:
            return trace
        self.count += known is None
        if self.count == _WARN_AT:
            logger.warning(
                "%s has been recorded for %d different kinds of calls. Each recording takes time "
                "and memory. Received: calls whose shapes, dtypes or Python arguments keep "
                "changing. Pad batches to one size, and pass numbers that change as tensors.",
                self._label,
                self.count,
            )
        return trace

    def __enter__(self) -> None:
        """Within the cache programs keep what they take of the arenas; then it is given back."""
        with self.lock:
            self._holders += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self._holders -= 1
            if not self._holders:
                for trace in self._kept.values():
                    trace.let_go()
                self.arenas.give_back()

    def lose_devices(self) -> None:
        """Forget all: they are bound to memory of devices that are about to go."""
        self.clear()

    def clear(self) -> None:
        """Forget all, and give their memory back."""
        self._kept.clear()
        self._latest = self.decisions = None
        self.count = 0
        self.arenas.clear()
