"""Runs of a recorded step that repeat it: on other devices, and with a digest of each result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirrored.backends.host import values_on_host
from mirrored.backends.product_settings import run_on_threads
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device, get_device_details
from mirrored.program.dataflow import ALL_REDUCE, COPY, SHARED, Graph, Node, Value
from mirrored.program.kernel_calls import Call
from mirrored.program.lowering import LoweredStage
from mirrored.program.program import Program
from mirrored.program.replay import Feeder, GuardFailed, SerialReplay
from mirrored.program.rewriting import Rewriting

if TYPE_CHECKING:
    from mirrored.program.executor import Runnable


def digest(array: Any) -> bytes:
    """Return a hash of the bits of an array of the host."""
    return sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).digest()


def rings_of(graph: Graph) -> list[list[Device]]:
    """Return the devices that can compute for one another, kind by kind, in replicas' order.

    Devices compute the same bits if they are of the host, or cards of one name.

    Args:
        graph: A recorded step.
    """
    rings: dict[Any, list[Device]] = {}
    for device in dict.fromkeys(() if graph.strategy is None else graph.strategy.devices):
        kind: Any = type(device.backend)
        if is_offloaded(device.backend):
            kind = kind, get_device_details(device.physical).get("device_name")
        rings.setdefault(kind, []).append(device)
    return [*rings.values()]


class Rotated(NamedTuple):
    """A step that other devices compute.

    Attributes:
        graph: The step.
        numbers: The new number for each replica's; none: they stay.
        devices: The new device for each one.
    """

    graph: Graph
    numbers: Mapping[int, int]
    devices: Mapping[Device, Device]


def rotated(graph: Graph, by: int) -> Rotated:
    """Return a step in which the next devices compute for each one.

    Variables stay where they are, and so do all-reduces, the order of all sums and each result's
    bits. A device gets copies of the variables whose memory it cannot read, and its results are
    copied to theirs.

    Args:
        graph: The step, which stays as it is.
        by: How many devices further its work moves.
    """
    moved = {
        device: ring[(i + by) % len(ring)]
        for ring in rings_of(graph)
        for i, device in enumerate(ring)
    }
    numbers: dict[int, int] = {}
    devices = graph.strategy.devices
    pairs = set(zip(graph.lanes or range(len(devices)), devices, strict=True))
    places = dict(pairs)
    if len(pairs) == len(places) == len(moved):  # Then their memory moves with the work.
        number_at = {device: number for number, device in places.items()}
        numbers = {number: number_at[moved[device]] for number, device in places.items()}
    return Rotated(_Rotation(graph, moved, numbers).graph(), numbers, moved)


class _Rotation(Rewriting):
    """A copy of a graph that other devices compute.

    Args:
        graph: The graph.
        devices: The new device for each one.
        numbers: The new number for each replica's.
    """

    def __init__(
        self, graph: Graph, devices: Mapping[Device, Device], numbers: Mapping[int, int]
    ) -> None:
        super().__init__(graph)
        self._devices, self._numbers = devices, numbers
        self._copies: dict[tuple[Value, Device], Value] = {}

    def graph(self) -> Graph:
        """Return the graph."""
        for value in self.old.inputs:
            device = self._devices.get(value.device, value.device)
            self.replace(value, self._numbered(Value(value.spec, device, value.replica)))
        for node in self.old.nodes:
            self.node(node)
        writes = []
        for variable, value in self.old.writes:
            device = variable.pinned()[0].device
            writes.append((variable, self._near(self.of(value), device, SHARED, True)))
        inputs = [self.of(value) for value in self.old.inputs]
        lanes = tuple([self._numbers.get(lane, lane) for lane in self.old.lanes])
        return self.copy(writes, inputs=inputs, lanes=lanes)

    def node(self, node: Node) -> Node:
        """Add the copy of a node, behind copies of what its device cannot read; return it."""
        stays = node.op is ALL_REDUCE  # Which rank adds what decides the bits of a sum.
        device = node.device if stays else self._devices.get(node.device, node.device)
        if node.op is not COPY:
            inputs = []
            for value in node.inputs:
                where = value.device if stays else device
                inputs.append(self._near(self.of(value), where, node.replica, node.updates))
            self._inputs.setdefault(id(node.inputs), tuple(inputs))
        new = super().node(node)
        new.output.device = device
        new.replica = self._numbered(new.output).replica
        return new

    def _numbered(self, value: Value) -> Value:
        value.replica = self._numbers.get(value.replica, value.replica)
        return value

    def _replacement(self, value: Value) -> Value:
        new = super()._replacement(value)
        return new if new is value else self._numbered(new)

    def _near(self, value: Value, device: Device, replica: int, updates: bool) -> Value:
        """Return a value where a device can read it, for an old node of a replica."""
        base = value.base
        if base.device.backend.memory == device.backend.memory:
            return value
        copy = self._copies.get((base, device))
        if copy is None:
            copy = self._copies[base, device] = Value(base.spec, device)
            copy.data = base.data
            if base.data is None:
                copy.replica = self._numbers.get(replica, replica)
                self.nodes.append(Node(COPY, (base,), {}, copy, copy.replica, updates))
        return copy if value is base else self.part(value, copy, value.offset)


# What a rotated step, or one that keeps casts, has more or less of than the step.
_UNNUMBERED = (COPY.name, "Cast")


def digests_of_nodes(
    program: "Runnable", feed: Callable[[Any], Mapping[int, Feeder]]
) -> dict[int, tuple[Node, bytes]]:
    """Run a step; return its nodes, each with a digest of its result, up to a guard that fails.

    They have their places in a graph without copies and casts. A node whose result stays in
    registers is missing: what it computes shows in the next one.

    Args:
        program: The program.
        feed: What writes its inputs.
    """
    nodes = [node for node in program.graph.nodes if node.op.name not in _UNNUMBERED]
    numbers = {node: i for i, node in enumerate(nodes) if not node.op.early}  # It goes on.
    digests: dict[int, tuple[Node, bytes]] = {}

    def look(node: Node) -> None:
        if node in numbers:
            array = program._arrays.of(node.output)
            bits = digest(values_on_host(node.device.backend, array))
            digests[numbers[node]] = node, bits

    with suppress(GuardFailed):
        if isinstance(program, Program):
            _run_on_host(program, feed(program.inputs), look)
        else:
            program.run(1, feed, lambda *_: True, look=look)
    return digests


def _run_on_host(
    program: Program, feeders: Mapping[int, Feeder], look: Callable[[Node], None]
) -> None:
    def looks(nodes: Iterable[Node | None]) -> list[Call]:
        return [Call(look, (node,)) for node in nodes if node is not None]

    def watched(calls: Sequence[Call]) -> list[Call]:
        new: list[Call] = []
        for node, own in groupby(calls, lambda call: call.node):
            new += [*own, *looks([node])]  # Now: another result may overwrite it.
        return new

    stages: list[LoweredStage] = []
    for stage in program.stages:
        if stage.replicas is not None:
            own = {number: watched(calls) for number, calls in stage.replicas.items()}
            stages.append(LoweredStage(replicas=own))
        elif stage.calls is not None:
            stages.append(LoweredStage(calls=watched(stage.calls)))
        else:
            stages.append(stage)
            calls = (call for pieces in stage.shards or () for own in pieces for call in own)
            nodes = dict.fromkeys(call.node for call in calls)
            kept = [node for node in nodes if node.output.base not in program.plan.locals]
            stages.append(LoweredStage(calls=looks(kept)))
    replay = SerialReplay(stages, program._draws)
    run_on_threads(program._blas, program._enter, replay.run, 1, feeders, None)
