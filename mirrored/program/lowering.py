"""Lowers a schedule to the calls that compute it on the program's arrays.

What a kernel does in Python is done here, once. A program of the host makes its calls; one whose
devices have streams launches them. What lowering them differs in are the classes below. Random
draws change from run to run, and enqueued steps write no variables after a collective has failed.
"""

import bisect
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.backends import Backend
from mirrored.backends.product_settings import use_all_threads, use_one_thread, uses_all_threads
from mirrored.backends.stream_backend import FusedOp, Fusion, is_offloaded
from mirrored.devices import Device
from mirrored.ops.dispatch import implementation, require_results
from mirrored.ops.random import NextDraw
from mirrored.program.buffers import Buffers
from mirrored.program.compiled_groups import CompiledGroups, fusion_of
from mirrored.program.dataflow import (
    ASSIGN,
    COPY,
    SHARED,
    Collective,
    Graph,
    Node,
    Value,
    is_between,
    joins_rows,
)
from mirrored.program.kernel_calls import Call, kernel_calls
from mirrored.program.kernel_fusion import pieces
from mirrored.program.schedule import FusedGroup, Guard, Kernels, Launch, Phase, Schedule, Stage

_DTYPE = np.dtype(np.float32)
# A kernel that makes more calls, as a convolution of many large images does, is called as a whole:
# a generated function of a hundred thousand lines takes seconds to compile.
_MOST_CALLS = 2_000


class WriteGuard:
    """A number that a step reads once all its sums are there: it writes where that is finite.

    The number is in memory of the host, and the device copies it when it comes to the guard. So to
    shut it takes no call that could wait for a device whose kernels wait for each other, and no
    lock. A step that is past the guard writes on all devices, since its sums were there.

    Args:
        device: The device that decides.

    Attributes:
        array: The number, as the step has read it.

    Raises:
        ResourceExhaustedError: There is no room for it.
    """

    def __init__(self, device: Device) -> None:
        self._backend = device.backend
        self._storage = device.allocate((1,), _DTYPE)
        self.array: Any = self._storage.array
        self._number: NDArray[Any] = np.empty(1, _DTYPE)
        if is_offloaded(self._backend):
            self._number = self._backend.pinned((1,), _DTYPE)
        self.shut()

    def read(self) -> list[Call]:
        """Return the calls with which a step reads the number."""
        if is_offloaded(self._backend):
            return [Call(self._backend.bring, (self._number, self.array))]
        return [Call(np.copyto, (self.array, self._number))]

    def open(self) -> None:
        """Let steps pass. None that was asked for before may be left that must not."""
        self._number[...] = 0.0

    def shut(self) -> None:
        """Let no step pass that has not by now."""
        self._number[...] = np.nan


def spread_flag(
    origin: Backend, backends: Sequence[Backend], flags: Mapping[Any, Any]
) -> list[tuple[Backend, Call]]:
    """Return the calls, each on a stream, that bring the guard's decision to other memories.

    Args:
        origin: The guard's device.
        backends: The devices that write.
        flags: For each memory the flag that says whether variables may be written.
    """
    others = {place.memory: place for place in reversed(backends) if place.memory in flags}
    others.pop(origin.memory, None)
    copies: list[tuple[Backend, Call]] = []
    for memory, backend in others.items():
        # By way of a stream each: they need not wait for one another.
        source = origin.another() if is_offloaded(origin) else origin
        arrays = flags[origin.memory], flags[memory]
        copies.append((backend, Call(backend.copy_across, (source, *arrays))))
    return copies


class Draws:
    """The random draws of one step: taken on one thread, before the step begins.

    Attributes:
        may_repeat: Whether a step may fail and be taken again with the same draws.
    """

    def __init__(self) -> None:
        # Each with its number, by which they are ordered, and the place of what it draws.
        self._sources: list[tuple[int, int, NextDraw]] = []
        # Key and number of each draw of this step, in the order in which they were added.
        self.drawn: list[Any] = []
        self._back: Callable[[], None] | None = None
        self.may_repeat = False

    def __bool__(self) -> bool:
        return bool(self._sources)

    def add(self, source: NextDraw, number: int) -> Callable[[], Any]:
        """Add a draw, and return what gives key and number of this step's.

        Args:
            source: Where it comes from.
            number: Draws are taken in the order of their numbers.
        """
        place, drawn = len(self._sources), self.drawn
        bisect.insort(self._sources, (number, place, source))
        drawn.append(None)
        return lambda: drawn[place]

    def mark(self) -> Callable[[], None]:
        """Return what takes back all that is taken from now on."""
        marks = [source.mark() for _, _, source in self._sources]

        def back() -> None:
            for mark in marks:
                mark()

        return back

    def take(self) -> None:
        """Take the next step's draws, in the order in which the function makes them."""
        if self.may_repeat:
            self._back = self.mark()
        run = object()
        for _, place, source in self._sources:
            self.drawn[place] = source(run)

    def take_back(self) -> None:
        """Take back those that were taken last, of a step that is to be taken again."""
        if self._back is not None:
            self._back()


class _Lowering(ABC):
    """What host and streams have in common."""

    def __init__(self, arrays: Buffers) -> None:
        self.arrays = arrays
        self._plan = arrays.plan

    @abstractmethod
    def _draw(
        self, node: Node, backend: Backend, kernel: Any, out: Any, attrs: dict[str, Any]
    ) -> list[Call]:
        """Return the calls of a random op, whose draw is another one in each step."""

    @abstractmethod
    def _write(self, backend: Backend, target: Any, value: Value) -> list[Call]:
        """Return the calls that write a variable's new value, if the step writes."""

    def _node(self, node: Node, backend: Backend) -> list[Call]:
        """Return the calls of a node on a backend of its device, whose stream may be another."""
        out = self.arrays.of(node.output)
        if joins_rows(node.op, node.attrs):
            return self._join(node, backend)
        inputs, attrs = [self.arrays.of(value) for value in node.inputs], dict(node.attrs)
        if node in self._plan.scratch:
            attrs["workspace"] = self.arrays.workspace(node)
        kernel = implementation(node.op, backend).kernel
        if kernel is None:
            raise ValueError(f"{node.op.name} has no kernel for {node.device.full_name}.")
        if node.op.random:
            return self._draw(node, backend, kernel, out, attrs)
        if node.op.whole and backend.host_readable:
            run = functools.partial(kernel, backend.xp, out, *inputs, **attrs)
            return [*self._check_of(node, inputs), Call(run)]
        numbers = node.op.elementwise and not out.ndim and not any(x.ndim for x in inputs)
        if numbers and backend.host_readable:
            # NumPy takes less time for one element in a row than for a number without an axis.
            out, inputs = out.reshape(1), [array.reshape(1) for array in inputs]
        calls = kernel_calls(backend, kernel, out, *inputs, **attrs)
        if backend.host_readable and len(calls) > _MOST_CALLS:
            calls = [Call(functools.partial(kernel, backend.xp, out, *inputs, **attrs))]
        return [*self._check_of(node, inputs), *calls]

    def _check_of(self, node: Node, inputs: Sequence[Any]) -> list[Call]:
        """Return the call that looks at values, where an op has one and kernels wait for it."""
        return []

    def _join(self, node: Node, backend: Backend) -> list[Call]:
        """Return the copies of those parts that are not computed in their place."""
        out, start = self.arrays.of(node.output), 0
        copy = backend.xp.copyto if backend.host_readable else backend.xp.copy
        calls: list[Call] = []
        for value in node.inputs:
            stop = start + value.spec.shape[0]
            if not self._plan.is_in_place(value, node.output, start):
                calls.append(Call(copy, (out[start:stop], self.arrays.of(value))))
            start = stop
        return calls

    def _commit(self, variable: Any, value: Value, backend: Backend) -> list[Call]:
        storage, offset = variable.pinned()
        target = storage.array[offset : offset + value.size].reshape(value.spec.shape)
        node = Node(ASSIGN, (value,), {}, Value(value.spec, storage.device), SHARED)
        calls = self._write(backend, target, value)
        return [call._replace(node=node) for call in calls]


# ------------------------------------------------------------------ the host


@dataclass(slots=True)
class LoweredStage:
    """The calls of one stage; exactly one of the attributes is set.

    Attributes:
        replicas: For each replica its calls.
        calls: Calls of one thread.
        shards: For each thread, for each of its pieces, the calls.
        check: Whether the program goes on.
    """

    replicas: dict[int, list[Call]] | None = None
    calls: list[Call] | None = None
    shards: list[list[list[Call]]] | None = None
    check: Callable[[], bool] | None = None


class HostLowering(_Lowering):
    """Lowers a program of the host.

    Args:
        arrays: Where the values are.
        threads: How many threads share fused groups.
        graph: What is lowered.

    Attributes:
        draws: The random draws that were met.
    """

    def __init__(self, arrays: Buffers, threads: int, graph: Graph) -> None:
        super().__init__(arrays)
        self._graph = graph
        self._threads = threads
        self.draws = Draws()

    def lower(self, schedule: Schedule) -> list[LoweredStage]:
        """Return what each stage does, and the writes that are left at the end."""
        self._compiled = CompiledGroups(self._graph, schedule, self._plan.locals)
        stages = [self._stage(stage) for stage in schedule.stages]
        commits = [
            call
            for variable, value in self._plan.commits
            for call in self._commit(variable, value, variable.pinned()[0].device.backend)
        ]
        self._compiled.compile()
        return [*stages, LoweredStage(calls=commits)] if commits else stages

    def _stage(self, stage: Stage) -> LoweredStage:
        (phase,) = stage[0].phases
        if isinstance(phase, Guard):
            return LoweredStage(check=self._check(phase.values))
        if isinstance(phase, FusedGroup):
            return LoweredStage(shards=[self._shard(phase, i) for i in range(self._threads)])
        if stage[0].replica == SHARED:
            return LoweredStage(calls=self._nodes(phase.nodes))
        return LoweredStage(replicas={work.replica: self._nodes(work.nodes()) for work in stage})

    def _nodes(self, nodes: Iterable[Node]) -> list[Call]:
        calls = []
        for run in self._compiled.runs(nodes):
            kernels: list[Call] = []
            for node in run:
                own = self._node(node, node.device.backend)
                large = uses_all_threads(node.flops) and not node.op.blocked
                if large and self._threads == 1 and not self._graph.one_thread:
                    own = [Call(use_all_threads), *own, Call(use_one_thread)]
                kernels += [Call(*call[:3], node) for call in own]
            calls += self._compiled.calls(run, [kernels], self.arrays.of) or kernels
        return calls

    def _check_of(self, node: Node, inputs: Sequence[Any]) -> list[Call]:
        if node.op.validate is None or (self._graph.labels_checked and node.op.of_labels):
            return []
        check = node.op.validate(*inputs, **node.attrs)
        return [] if check is None else [Call(check)]

    def _draw(
        self, node: Node, backend: Backend, kernel: Any, out: Any, attrs: dict[str, Any]
    ) -> list[Call]:
        draw = self.draws.add(attrs.pop("draw"), node.output.number)
        attrs.pop("key")
        xp = backend.xp

        def run() -> None:
            key, number = draw()
            kernel(xp, out, key=key, draw=number, **attrs)

        return [Call(run)]

    def _write(self, backend: Backend, target: Any, value: Value) -> list[Call]:
        copy: Any = COPY.kernel
        return kernel_calls(backend, copy, target, self.arrays.of(value))

    def _check(self, values: Sequence[Value]) -> Callable[[], bool]:
        read = [self.arrays.of(value).reshape(-1)[:1].item for value in values]
        if len(read) > 1:
            return lambda: math.isfinite(sum(item() for item in read))
        only, isfinite = read[0], math.isfinite
        return lambda: isfinite(only())

    def _shard(self, group: FusedGroup, thread: int) -> list[list[Call]]:
        """Return the calls of each piece of one thread's shard."""
        shard: list[list[Call]] = []
        for begin, end in pieces(group.size, self._threads, thread):
            calls = []
            for node in group.nodes:
                out, *inputs = (
                    self.arrays.piece(value, thread, begin, end)
                    for value in (node.output, *node.inputs)
                )
                backend = node.device.backend
                kernel: Any = implementation(node.op, backend).kernel
                kernels = kernel_calls(backend, kernel, out, *inputs, **node.attrs)
                calls += [call._replace(node=node) for call in kernels]
            shard.append(calls)
        if not shard or len(self._compiled.runs(group.nodes)) > 1:
            return shard
        start, stop = pieces(group.size, self._threads, thread)[0][0], end

        def array(value: Value) -> Any:
            whole = self.arrays.of(value)
            return whole[start:stop] if whole.shape else whole

        loop = self._compiled.calls(group.nodes, shard, array)
        return shard if loop is None else [loop]


# ------------------------------------------------------------------ streams


class StreamLowering(_Lowering):
    """Lowers a program whose devices have streams, and what it does on the host.

    Args:
        arrays: Where the values are.
        flags: For each memory the flag that says whether variables may be written, where there is
            a guard.
        counters: For each random node where it reads key and number of its draw from.
        write_guard: The host's say in whether variables are written; None: it has none.

    Attributes:
        in_place: The values that are computed in a variable's memory.
    """

    def __init__(
        self,
        arrays: Buffers,
        flags: dict[Any, Any],
        counters: dict[Node, Value],
        write_guard: WriteGuard | None = None,
    ) -> None:
        super().__init__(arrays)
        self._flags = flags
        self._counters = counters
        self._write_guard = write_guard
        blocks = self._plan.blocks
        self.in_place = {value for value, block in blocks.items() if block.storage is not None}

    def lower(self, launch: Launch) -> list[Call]:
        """Return the calls of a launch that is no all-reduce, in order."""
        return [call for phase in launch.phases for call in self._phase(phase, launch.backend)]

    def ranks(self, collective: Collective) -> tuple[list[Any], list[Any]]:
        """Return, for each rank of an all-reduce, what it adds and where its sum goes."""
        sums = [node.output for node in collective.nodes]
        sent, summed = (
            [self.arrays.of(value).reshape(-1) for value in values]
            for values in (collective.sends(), sums)
        )
        return sent, summed

    def commits(self, backend: Backend) -> list[Call]:
        """Return the writes of variables in a backend's memory that are left for the end."""
        calls: list[Call] = []
        for variable, value in self._plan.commits:
            if variable.pinned()[0].device.backend.memory == backend.memory:
                calls += self._commit(variable, value, backend)
        return calls

    def _phase(self, phase: Phase, backend: Backend) -> list[Call]:
        if isinstance(phase, Guard):
            return self._guard(phase.values, backend)
        if isinstance(phase, FusedGroup):
            return [call._replace(node=phase.nodes[-1]) for call in self._fused(phase, backend)]
        if phase.together:
            return [call._replace(node=phase.nodes[-1]) for call in self._combined(phase, backend)]
        calls = []
        for node in phase.nodes:
            calls += [call._replace(node=node) for call in self._node(node, backend)]
        return calls

    def _node(self, node: Node, backend: Backend) -> list[Call]:
        if is_between(node):
            source = node.inputs[0].device.backend
            arrays = self.arrays.of(node.inputs[0]), self.arrays.of(node.output)
            return [Call(backend.copy_across, (source, *arrays))]
        calls = super()._node(node, backend)
        if is_offloaded(backend):
            verdicts = implementation(node.op, backend).verdicts
            if verdicts:  # Kernels that follow do not look at values: the host does.
                array = self.arrays.workspace(node)[0][:verdicts]
                calls.append(Call(require_results, (node.op, backend, array)))
            return calls
        return [Call(backend.run, (call.run,)) for call in calls]

    def _draw(
        self, node: Node, backend: Backend, kernel: Any, out: Any, attrs: dict[str, Any]
    ) -> list[Call]:
        # The draw is read from memory when the kernel runs.
        attrs |= {"key": (0, 0), "draw": 0, "counters": self.arrays.of(self._counters[node])}
        if backend.host_readable:
            return [Call(_random_on_host, (kernel, backend, out, attrs))]
        return kernel_calls(backend, kernel, out, **attrs)

    def _write(self, backend: Backend, target: Any, value: Value) -> list[Call]:
        source, flag = self.arrays.of(value), self._flags.get(backend.memory)
        if not (is_offloaded(backend) and backend.fuses(COPY.name)):
            return [Call(_copy_if, (backend, flag, source, target))]
        fusion = Fusion((value.spec,), (FusedOp(COPY.name, (0,), *value.spec),), (0,))
        return kernel_calls(backend, backend.fused_kernel(fusion), (target,), (source,), flag)

    def _guard(self, values: Sequence[Value], backend: Backend) -> list[Call]:
        arrays = [self.arrays.of(value).reshape(-1)[:1] for value in values]
        calls: list[Call] = []
        if self._write_guard is not None:
            calls, arrays = self._write_guard.read(), [*arrays, self._write_guard.array]
        flag = self._flags.get(backend.memory)
        kernel = backend.finite_kernel() if is_offloaded(backend) else None
        if kernel is None:
            return [*calls, Call(_guard_on_host, (backend, flag, arrays))]
        return calls + kernel_calls(backend, kernel, flag, *arrays)

    def _combined(self, phase: Kernels, backend: Backend) -> list[Call]:
        """Return the calls of the one kernel that computes several nodes."""
        if not is_offloaded(backend):
            raise ValueError("Kernels of several ops are for devices that have streams.")
        nodes = phase.nodes
        attrs = [
            {**node.attrs, "workspace": self.arrays.workspace(node)}
            if node in self._plan.scratch
            else dict(node.attrs)
            for node in nodes
        ]
        return kernel_calls(
            backend,
            backend.combinations[tuple(node.op.name for node in nodes)].run,
            tuple(self._array(node.output) for node in nodes),
            tuple(tuple(map(self._array, node.inputs)) for node in nodes),
            tuple(attrs),
        )

    def _array(self, value: Value) -> Any:
        """Return the array of a value, None where it is none, but passes within a kernel."""
        return None if value.base in self._plan.locals else self.arrays.of(value)

    def _fused(self, group: FusedGroup, backend: Backend) -> list[Call]:
        if not is_offloaded(backend):
            raise ValueError("Kernels of several ops are for devices that have streams.")
        local = self._plan.locals
        kept = [i for i, node in enumerate(group.nodes) if node.output not in local]
        fusion, inputs = fusion_of(group.nodes, kept)
        flag = None
        if any(group.nodes[i].output in self.in_place for i in kept):
            flag = self._flags.get(backend.memory)
        return kernel_calls(
            backend,
            backend.fused_kernel(fusion),
            tuple(self.arrays.of(group.nodes[i].output) for i in kept),
            tuple(map(self.arrays.of, inputs)),
            flag,
        )


def _guard_on_host(backend: Backend, flag: Any, arrays: Sequence[Any]) -> None:
    if not all(np.isfinite(backend.to_host(array)).all() for array in arrays):
        backend.copy_between(np.zeros(1, flag.dtype), flag)


def _copy_if(backend: Backend, flag: Any, source: Any, target: Any) -> None:
    if flag is None or backend.to_host(flag)[0]:
        backend.copy_between(source, target)


def _random_on_host(kernel: Any, backend: Backend, out: Any, attrs: dict[str, Any]) -> None:
    first, second, number = backend.to_host(attrs["counters"]).tolist()
    drawn = {"key": (first, second), "draw": number}
    kernel(backend.xp, out, **{name: attrs[name] for name in attrs if name != "counters"} | drawn)
