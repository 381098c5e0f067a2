"""Runs of a recorded step that repeat it: on other devices, and with a digest of each result."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any

import numpy as np

from mirrored.backends.product_settings import run_on_threads
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device
from mirrored.program.dataflow import SHARED, Graph, Node, Value
from mirrored.program.kernel_calls import Call
from mirrored.program.lowering import LoweredStage
from mirrored.program.program import Program
from mirrored.program.replay import Feeder, SerialReplay
from mirrored.program.rewriting import Rewriting


def digest(array: Any) -> bytes:
    """Return a hash of the bits of an array of the host."""
    return sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).digest()


def ring_of(graph: Graph) -> list[Device]:
    """Return the devices that can compute for one another, in the order of their replicas.

    Those of the host read one another's memory. A device with streams repeats its own work.

    Args:
        graph: A recorded step.
    """
    devices = list(dict.fromkeys(graph.strategy.devices if graph.strategy is not None else ()))
    if not devices or any(is_offloaded(value.device.backend) for value in graph.values()):
        return [graph.device]
    return devices


def rotated(graph: Graph, by: int) -> tuple[Graph, dict[int, int]]:
    """Return a step in which the next devices compute for each one, and its replicas' numbers.

    Variables stay where they are, and so do the order of all sums and each result's bits.

    Args:
        graph: The step, of devices of the host, which stays as it is.
        by: How many devices further its work moves.
    """
    ring = ring_of(graph)
    moved = {device: ring[(i + by) % len(ring)] for i, device in enumerate(ring)}
    devices = graph.strategy.devices
    pairs = set(zip(graph.lanes or range(len(devices)), devices, strict=True))
    places = dict(pairs)
    numbers = {number: number for number in (SHARED, *places)}
    if len(pairs) == len(places) == len(ring):  # Then their memory moves with the work.
        number_at = {device: number for number, device in places.items()}
        numbers |= {number: number_at[moved[device]] for number, device in places.items()}
    copy = _Rotation(graph, moved, numbers)
    lanes = tuple([numbers[lane] for lane in graph.lanes])
    return copy.graph(lanes), numbers


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

    def graph(self, lanes: tuple[int, ...]) -> Graph:
        """Return the graph; `lanes` are its replicas'."""
        inputs = [Value(value.spec, value.device, value.replica) for value in self.old.inputs]
        for value, new in zip(self.old.inputs, inputs, strict=True):
            self.replace(value, new)
        for node in self.old.nodes:
            self.node(node)
        graph = self.copy(inputs=inputs, lanes=lanes)
        for new in {id(new): new for old, new in self._values.items() if new is not old}.values():
            new.device = self._devices.get(new.device, new.device)
            new.replica = self._numbers.get(new.replica, new.replica)
        for node in graph.nodes:
            node.replica = self._numbers.get(node.replica, node.replica)
        return graph


def digests_of_nodes(program: Program, feeders: Mapping[int, Feeder]) -> dict[int, bytes]:
    """Run a step, and return a digest of what each node computes, by its place in the graph.

    A node whose result stays in registers has none: it shows in the next one that has.

    Args:
        program: The program, of the host.
        feeders: What writes its inputs.
    """
    numbers = {node: i for i, node in enumerate(program.graph.nodes)}
    digests: dict[int, bytes] = {}

    def looks(nodes: Iterable[Node | None]) -> list[Call]:
        return [Call(look, (node,)) for node in nodes if node in numbers]

    def look(node: Node) -> None:
        digests[numbers[node]] = digest(program._arrays.of(node.output))

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
    return digests
