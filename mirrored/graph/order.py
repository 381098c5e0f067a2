"""The order in which the nodes between inputs and outputs run and are listed.

Both orders are Keras': by the longest way to an output, and among equals as they are met from the
outputs. Nothing here recurs, so a graph may be deeper than Python's stack.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored.graph.tensor import Node, SymbolicTensor


class Order(NamedTuple):
    """The nodes between inputs and outputs, those of inputs included.

    Attributes:
        nodes: In an order in which they can be run.
        callees: What they call, each once, as a model lists its layers.
        by_depth: The nodes by how far they are from the outputs, farthest first.
    """

    nodes: list[Node]
    callees: list[Any]
    by_depth: list[list[Node]]


def order_of(inputs: Sequence[SymbolicTensor], outputs: Any) -> Order:
    """Return the order of what lies between inputs and outputs.

    Args:
        inputs: Where to begin.
        outputs: Where to end, in nested lists, tuples and dicts.

    Raises:
        ValueError: An output depends on more than the inputs, or two callees have one name.
    """
    between, seen = nodes_between(inputs, _nest.flatten(outputs))
    among = set(between)
    depths: dict[Node, int] = {}
    callee_depths: dict[Any, int] = {}  # By identity: layers are equal to themselves alone.
    for node in reversed(between):
        # A layer that is called several times is listed where it is first needed.
        depth = max(depths.get(node, 0), callee_depths.get(id(node.callee), 0))
        callee_depths[id(node.callee)] = depths[node] = depth
        for tensor in node.inputs:
            before = tensor.node
            if before in among:
                depths[before] = max(depth + 1, depths.get(before, 0))
    for tensor in inputs:  # One that no output needs is an input all the same.
        if tensor.node.is_input and id(tensor.node.callee) not in callee_depths:
            callee_depths[id(tensor.node.callee)] = depths[tensor.node] = 0
            seen[id(tensor.node.callee)] = -1
    nodes = sorted(depths, key=lambda node: -depths[node])
    callees = {id(node.callee): node.callee for node in nodes}
    listed = sorted(callees, key=lambda callee: (-callee_depths[callee], seen[callee]))
    order = Order(nodes, [callees[callee] for callee in listed], _grouped(nodes, depths))
    _check_connected(nodes, inputs, outputs)
    _check_names_differ(order.callees)
    return order


def nodes_between(
    inputs: Iterable[SymbolicTensor], outputs: Iterable[SymbolicTensor]
) -> tuple[list[Node], dict[int, int]]:
    """Return the nodes that outputs need, sorted from the inputs on.

    Args:
        inputs: What is not looked behind.
        outputs: What is needed.

    Returns:
        The nodes, and when each callee was first met on the way from the outputs, by its id.
    """
    ends = set(inputs)
    done: set[Node] = set()
    nodes: list[Node] = []
    seen: dict[int, int] = {}
    for output in outputs:
        # Each entry is a placeholder to go to, or a node all of whose inputs were gone to.
        left: list[SymbolicTensor | Node] = [output]
        while left:
            entry = left.pop()
            if isinstance(entry, Node):
                if entry not in done:
                    done.add(entry)
                    nodes.append(entry)
                continue
            node = entry.node
            if node in done:
                continue
            if entry in ends and not node.is_input:
                continue
            seen.setdefault(id(node.callee), len(seen))
            left.append(node)
            left.extend(reversed(node.inputs))
    return nodes, seen


def _grouped(nodes: list[Node], depths: dict[Node, int]) -> list[list[Node]]:
    groups: defaultdict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        groups[depths[node]].append(node)
    return [groups[depth] for depth in sorted(groups, reverse=True)]


def _check_connected(nodes: list[Node], inputs: Sequence[SymbolicTensor], outputs: Any) -> None:
    """Raise ValueError where an output is computed from more than the inputs."""
    there = set(inputs)
    for node in nodes:
        if not node.is_input and there.issuperset(node.inputs):
            there.update(node.outputs)
    for path, output in _with_paths(outputs, ()):
        if output not in there:
            names = [input_.name for input_ in inputs]
            raise ValueError(
                f"Output with path `{'.'.join(path)}` is not connected to `inputs`. Received: the "
                f"output {output!r} and inputs of the names {names}. Pass all that it is computed "
                "from."
            )


def _with_paths(
    structure: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], SymbolicTensor]]:
    if isinstance(structure, dict):
        for key in structure:
            yield from _with_paths(structure[key], (*path, str(key)))
    elif isinstance(structure, list | tuple):
        for index, part in enumerate(structure):
            yield from _with_paths(part, (*path, str(index)))
    else:
        yield path, structure


def _check_names_differ(callees: list[Any]) -> None:
    for name, count in Counter(callee.name for callee in callees).items():
        if count > 1:
            raise ValueError(
                f'The name "{name}" is used {count} times in the model. All operation names '
                "should be unique. Pass another `name` to one of the layers."
            )
