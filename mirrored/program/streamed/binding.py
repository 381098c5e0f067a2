"""From the tracks of a streamed program to the launches that compute them on its arrays.

A backend's kernel is run once with a stand-in for what it launches with, which notes the calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirrored.backends import Backend
from mirrored.backends.stream_backend import Chain, Step, StreamBackend, is_streamed
from mirrored.ops.registry import implementation
from mirrored.program.arrays import Arrays
from mirrored.program.binding import Call, bind
from mirrored.program.bound import ASSIGN
from mirrored.program.graph import JOINT, Collective, Node, Value, joins_rows
from mirrored.program.recorder import COPY
from mirrored.program.schedule import Guard, Joint, Phase, Region
from mirrored.program.streamed.chains import is_between
from mirrored.program.streamed.gate import Gate
from mirrored.program.streamed.stages import Track
from mirrored.program.streamed.steps import AllReduce, BoundTrack


class LaunchNotes:
    """Stands for what kernels launch with, and notes what is called of it.

    Args:
        xp: What they launch with.
        calls: The list that calls are added to.
    """

    def __init__(self, xp: Any, calls: list[Call]) -> None:
        """Note calls of `xp` in `calls`."""
        self._xp = xp
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a function that notes its call."""
        function = getattr(self._xp, name)

        def note(*args: Any, **kwargs: Any) -> None:
            self._xp.prepare(name, args)
            self._calls.append(Call(function, (*args, *kwargs.values()), tuple(kwargs)))

        return note


@dataclass(slots=True)
class StreamedBinder:
    """Binds the tracks of one program.

    Attributes:
        arrays: Where the values are.
        flags: For each memory the flag that says whether variables may be written, where there is
            a guard.
        counters: For each random node where it reads key and number of its draw from.
        gate: The host's say in whether variables are written; None: it has none.
    """

    arrays: Arrays
    flags: dict[Any, Any]
    counters: dict[Node, Value]
    gate: Gate | None = None
    _homed: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        blocks = self.arrays.plan.blocks
        self._homed = {value for value, block in blocks.items() if block.home is not None}

    def track(self, track: Track) -> BoundTrack:
        """Return a track with its calls, in order."""
        calls: list[Call] = []
        if track.collective is not None:
            return BoundTrack(track, calls, self._all_reduce(track.collective))
        for phase in track.phases:
            calls += self._phase(phase, track)
        return BoundTrack(track, calls)

    def _all_reduce(self, collective: Collective) -> AllReduce:
        sends = [self.arrays.of(value).reshape(-1) for value in collective.sends()]
        sums = [self.arrays.of(node.output).reshape(-1) for node in collective.nodes]
        return AllReduce(collective, sends, sums)

    def commits(self, backend: Backend) -> list[Call]:
        """Return the writes of variables in a backend's memory that are left for the end."""
        calls: list[Call] = []
        for variable, value in self.arrays.plan.commits:
            home, offset = variable.pinned()
            if home.device.backend.memory != backend.memory:
                continue
            target = home.storage.array[offset : offset + value.size].reshape(value.spec.shape)
            node = Node(ASSIGN, (value,), {}, Value(value.spec, home.device), JOINT)
            source = self.arrays.of(value)
            if is_streamed(backend):
                chain = Chain((value.spec,), (Step(COPY.name, (0,), *value.spec),), (0,))
                made = self._noted(
                    backend, backend.chain_kernel(chain), (target,), (source,), self._flag(backend)
                )
            else:
                made = [Call(_copy_on_host, (source, target, self._flag(backend)))]
            calls += [call._replace(node=node) for call in made]
        return calls

    def _phase(self, phase: Phase, track: Track) -> list[Call]:
        backend = track.backend
        if isinstance(phase, Guard):
            return self._guard(phase.values, backend)
        if isinstance(phase, Region):
            calls = self._chain(phase, track)
            return [call._replace(node=phase.nodes[-1]) for call in calls]
        calls = []
        if isinstance(phase, Joint):
            for node, made in self._nodes(phase.nodes, backend):
                calls += [call._replace(node=node) for call in made]
        return calls

    def _guard(self, values: Sequence[Value], backend: Backend) -> list[Call]:
        arrays = [self.arrays.of(value).reshape(-1)[:1] for value in values]
        calls: list[Call] = []
        if self.gate is not None:
            calls, arrays = self.gate.read(), [*arrays, self.gate.array]
        if not is_streamed(backend):
            return [*calls, Call(_guard_on_host, (self._flag(backend), arrays))]
        return calls + self._noted(backend, backend.finite_kernel(), self._flag(backend), *arrays)

    def _flag(self, backend: Backend) -> Any:
        return self.flags.get(backend.memory)

    # ------------------------------------------------------------------ kernels

    def _nodes(self, nodes: list[Node], backend: Backend) -> list[tuple[Node, list[Call]]]:
        if len(nodes) == 2 and is_streamed(backend):
            first, second = nodes
            kernel = backend.fused[first.op.name, second.op.name]
            outs = self.arrays.of(first.output), self.arrays.of(second.output)
            inputs = [self.arrays.of(value) for value in second.inputs]
            return [(second, self._noted(backend, kernel, outs, *inputs))]
        return [(node, self._node(node, backend)) for node in nodes]

    def _node(self, node: Node, backend: Backend) -> list[Call]:
        out = self.arrays.of(node.output)
        inputs = tuple(self.arrays.of(value) for value in node.inputs)
        if is_between(node):
            source = node.inputs[0].device.backend
            return [Call(backend.copy_across, (source, inputs[0], out))]
        if joins_rows(node.op, node.attrs) and is_streamed(backend):
            return self._join(node, backend)
        attrs = dict(node.attrs)
        if node in self.arrays.plan.scratch:
            attrs["workspace"] = self.arrays.workspace(node)
        kernel = implementation(node.op, backend).kernel
        if kernel is None:
            raise ValueError(f"{node.op.name} has no kernel for {node.device.full_name}.")
        if node.op.random:
            # The draw changes from run to run, and is read from memory when the kernel runs.
            attrs |= {"key": (0, 0), "draw": 0, "counters": self.arrays.of(self.counters[node])}
            if not is_streamed(backend):
                return [Call(backend.run, (_random_on_host, kernel, backend.xp, out, attrs))]
        if is_streamed(backend):
            return self._noted(backend, kernel, out, *inputs, **attrs)
        return [
            Call(backend.run, (call.run,))
            for call in bind(backend.xp, kernel, out, inputs, **attrs)
        ]

    def _join(self, node: Node, backend: Backend) -> list[Call]:
        """Return the copies of those parts that are not computed in their place."""
        plan, out, start = self.arrays.plan, self.arrays.of(node.output), 0
        calls: list[Call] = []
        for value in node.inputs:
            stop = start + value.spec.shape[0]
            if not plan.is_in_place(value, node.output, start):
                calls.append(Call(backend.xp.copy, (out[start:stop], self.arrays.of(value))))
            start = stop
        return calls

    def _chain(self, region: Region, track: Track) -> list[Call]:
        backend = track.backend
        if not is_streamed(backend):
            raise ValueError("Chains are for devices that have streams.")
        inputs: dict[Any, Value] = {}
        made = {node.output: i for i, node in enumerate(region.nodes)}
        read: list[list[Any]] = []
        for node in region.nodes:
            keys: list[Any] = []
            for value in node.inputs:
                key: Any = made.get(value.base)
                if key is None:
                    key = (value.base, value.offset, value.spec)
                    inputs.setdefault(key, value)
                keys.append(key)
            read.append(keys)
        numbers = {key: i for i, key in enumerate(inputs)}
        steps = tuple(
            Step(
                node.op.name,
                tuple(len(inputs) + k if isinstance(k, int) else numbers[k] for k in keys),
                *node.output.spec,
            )
            for node, keys in zip(region.nodes, read, strict=True)
        )
        kept = [i for i, node in enumerate(region.nodes) if node.output not in self._locals]
        chain = Chain(tuple(value.spec for value in inputs.values()), steps, tuple(kept))
        flag = None
        if any(region.nodes[i].output in self._homed for i in kept):
            flag = self._flag(backend)
        return self._noted(
            backend,
            backend.chain_kernel(chain),
            tuple(self.arrays.of(region.nodes[i].output) for i in kept),
            tuple(self.arrays.of(value) for value in inputs.values()),
            flag,
        )

    @property
    def _locals(self) -> set[Value]:
        return self.arrays.plan.locals

    def _noted(
        self, backend: StreamBackend, kernel: Callable[..., None], *args: Any, **attrs: Any
    ) -> list[Call]:
        # Compiling may fail, and does so before the first step.
        calls: list[Call] = []
        backend.run(kernel, LaunchNotes(backend.xp, calls), *args, **attrs)
        return calls


def _guard_on_host(flag: Any, arrays: Sequence[Any]) -> None:
    if not all(np.isfinite(each).all() for each in arrays):
        flag[...] = 0


def _copy_on_host(source: Any, target: Any, flag: Any) -> None:
    if flag is None or flag[0]:
        np.copyto(target, source)


def _random_on_host(kernel: Any, xp: Any, out: Any, attrs: dict[str, Any]) -> None:
    first, second, number = attrs["counters"].tolist()
    drawn = {"key": (first, second), "draw": number}
    kernel(xp, out, **{name: attrs[name] for name in attrs if name != "counters"} | drawn)
