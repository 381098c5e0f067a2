"""Which nodes one kernel computes: chains of elementwise ops, and a loss with its gradient.

A kernel's launch takes as long as a small op, and passing values through memory longer than
computing them.
"""

import itertools
from collections.abc import Iterable
from typing import Any

from mirrored.backends import Backend
from mirrored.backends.stream_backend import is_streamed
from mirrored.program.graph import Node, Value
from mirrored.program.schedule import Joint, Region

_MOST_INPUTS = 32
_MOST_STEPS = 64


def group(nodes: Iterable[Node]) -> list[Joint | Region]:
    """Return nodes of one lane in phases: chains as regions, and all others one or two by one.

    Args:
        nodes: In an order in which they can run.
    """
    return _Groups(_with_pairs(list(nodes))).phases


class _Groups:
    def __init__(self, units: list[list[Node]]) -> None:
        self.phases: list[Joint | Region] = []
        self._place: dict[Node, int] = {}
        self._inputs: list[set[Value]] = []
        for unit in units:
            if len(unit) == 1 and _is_step(unit[0]):
                self._add_step(unit[0])
            else:
                self._add(Joint(unit), unit)

    def _add(self, phase: Joint | Region, nodes: list[Node]) -> None:
        self._place |= dict.fromkeys(nodes, len(self.phases))
        self.phases.append(phase)
        self._inputs.append({value for node in nodes for value in node.inputs})

    def _add_step(self, node: Node) -> None:
        """Put a node into the last chain that can take it, or begin one."""
        for place in range(len(self.phases) - 1, -1, -1):
            if self._can_join(node, place):
                region = self.phases[place]
                region.nodes.append(node)
                self._place[node] = place
                self._inputs[place] |= {v for v in node.inputs if v.base.node not in region.nodes}
                return
            if any(self._place.get(value.node) == place for value in node.inputs if value.node):
                break  # It needs what is computed there.
        self._add(Region([node], node.output.size), [node])

    def _can_join(self, node: Node, place: int) -> bool:
        region = self.phases[place]
        if not isinstance(region, Region) or region.size != node.output.size:
            return False
        if len(region.nodes) >= _MOST_STEPS:
            return False
        if len(self._inputs[place] | set(node.inputs)) > _MOST_INPUTS:
            return False
        if node.device.backend.memory != region.nodes[0].device.backend.memory:
            return False
        for value in node.inputs:
            made = -1 if value.node is None else self._place.get(value.node, -1)
            # What the chain computes itself is there element by element, not as a whole.
            if made > place or (made == place and not _is_full(value, region.size)):
                return False
        return True


def _is_full(value: Value, size: int) -> bool:
    return value.whole and value.size == size


def _is_step(node: Node) -> bool:
    """Whether a node can be a step of a chain."""
    backend = node.device.backend
    if not is_streamed(backend) or not backend.fuses(node.op.name):
        return False
    return all(value.device.backend.memory == backend.memory for value in node.inputs)


def _with_pairs(nodes: list[Node]) -> list[list[Node]]:
    """Return nodes one by one, but a loss with its gradient, brought forward to it."""
    partner = _pairs(nodes)
    units: list[list[Node]] = []
    done: set[Node] = set()

    def emit(node: Node) -> None:
        if node in done:
            return
        second = partner.get(node)
        done.add(node)
        if second is None:
            units.append([node])
            return
        # What the gradient needs beside the loss's inputs does not depend on the loss.
        wanted = _ancestors_in(second, nodes)
        for each in nodes:
            if each in wanted:
                emit(each)
        done.add(second)
        units.append([node, second])

    for node in nodes:
        emit(node)
    return units


def _pairs(nodes: list[Node]) -> dict[Node, Node]:
    """Return, for each loss whose gradient is wanted too, that gradient's node."""
    partners: dict[Node, Node] = {}
    backends = [node.device.backend for node in nodes]
    fused: dict[Backend, Any] = {each: each.fused for each in backends if is_streamed(each)}
    names = {name for pairs in fused.values() for pair in pairs for name in pair}
    candidates = [node for node in nodes if node.op.name in names and node.device.backend in fused]
    for first, second in itertools.permutations(candidates, 2):
        if (
            (first.op.name, second.op.name) in fused[first.device.backend]
            and first.device is second.device
            and second.inputs[: len(first.inputs)] == first.inputs
            and first not in partners
            and first not in _ancestors_in(second, nodes)
        ):
            partners[first] = second
    return partners


def _ancestors_in(node: Node, nodes: list[Node]) -> set[Node]:
    """Return those of some nodes that a node depends on."""
    among, found = set(nodes), set[Node]()
    stack = [value.node for value in node.inputs]
    while stack:
        each = stack.pop()
        if each is not None and each in among and each not in found:
            found.add(each)
            stack += [value.node for value in each.inputs]
    return found
