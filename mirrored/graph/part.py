"""A part of a graph: computes some placeholders' values from those of others.

It is looked up once, so that a run is a loop over calls whose arguments are found by their places.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored.devices import device
from mirrored.graph.symbolic_tensor import Node, SymbolicTensor
from mirrored.ops.tensor import Tensor

_ANYWHERE = nullcontext()


class _Place:
    """Marks an argument whose value is in a slot."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


class _Step(NamedTuple):
    """One call of a run.

    Attributes:
        callee: What is called.
        only: The place of its one argument; -1 where it is called with more, or by name.
        args: Its arguments by position, with places in them.
        kwargs: Those by name.
        targets: The places of its results.
        scope: The device scope in which it is called.
        node: Its node.
    """

    callee: Any
    only: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: tuple[int, ...]
    scope: AbstractContextManager[Any]
    node: Node


class Part:
    """The calls between inputs and outputs.

    Args:
        inputs: The placeholders whose values are given, as a list.
        outputs: Those whose values are computed, in nested lists, tuples and dicts.
        nodes: The nodes to run, in order, where somebody else says it; None: Keras' order.
        device_of: From a node to the device that it runs on; None: what it was drawn for.

    Raises:
        ValueError: An output depends on more than the inputs, or two callees have one name.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(2,))
        >>> y = mr.layers.Flatten()(x)
        >>> Part([x], [y]).run([mr.ones((1, 2))])[0].shape
        (1, 2)
    """

    def __init__(
        self,
        inputs: Sequence[SymbolicTensor],
        outputs: Any,
        nodes: Sequence[Node] | None = None,
        device_of: Callable[[Node], Any] | None = None,
    ) -> None:
        self.inputs = list(inputs)
        self.outputs: list[SymbolicTensor] = _nest.flatten(outputs)
        self.order = order_of(self.inputs, outputs) if nodes is None else Order(list(nodes), [])
        places: dict[SymbolicTensor, int] = {tensor: i for i, tensor in enumerate(self.inputs)}
        free = itertools.count(len(self.inputs))
        self._steps: list[_Step] = []
        for node in self.order.nodes:
            if not all(tensor in places for tensor in node.outputs):
                where = node.device if device_of is None else device_of(node)
                self._steps.append(_step(node, places, free, where))
        self._size = next(free)
        self._results = [places[output] for output in self.outputs]

    @property
    def calls(self) -> list[Node]:
        """The nodes that run, in order."""
        return [step.node for step in self._steps]

    def run(self, values: Sequence[Any], **context: Any) -> list[Any]:
        """Return the values of the outputs.

        Args:
            values: Those of the inputs.
            **context: What is passed on to calls that were made with an argument of that name,
                in its place; nothing for None.
        """
        there = [*values, *[None] * (self._size - len(values))]
        for callee, only, args, kwargs, targets, scope, node in self._steps:
            if only >= 0 and scope is _ANYWHERE:
                result = callee(there[only])
            else:
                named = filled(kwargs, there)
                named.update(
                    (name, context[name])
                    for name in named
                    if name in context and context[name] is not None
                )
                with scope:
                    result = callee(*filled(args, there), **named)
            if len(targets) == 1:
                there[targets[0]] = result if isinstance(result, Tensor) else _only(result)
            else:
                for target, value in zip(targets, _results_of(node, result), strict=True):
                    there[target] = value
        return [there[place] for place in self._results]

    def map(self, values: Sequence[Any], call: Callable[..., Any]) -> list[Any]:
        """Return the outputs if a function makes every call.

        Args:
            values: What stands for the inputs.
            call: Given the callee and its arguments.
        """
        there = [*values, *[None] * (self._size - len(values))]
        for step in self._steps:
            with step.scope:
                result = call(step.callee, *filled(step.args, there), **filled(step.kwargs, there))
            for target, value in zip(step.targets, _nest.flatten(result), strict=True):
                there[target] = value
        return [there[place] for place in self._results]


def _step(node: Node, places: dict[SymbolicTensor, int], free: Iterator[int], where: Any) -> _Step:
    """Return a node's step on a device, and assign free slots to its results."""

    def placed(leaf: Any) -> Any:
        return _Place(places[leaf]) if isinstance(leaf, SymbolicTensor) else leaf

    args, kwargs = _nest.map_structure(placed, node.args), _nest.map_structure(placed, node.kwargs)
    single = len(args) == 1 and not kwargs and isinstance(args[0], _Place)
    # A result that is given has its value already: what is computed goes nowhere that is read.
    targets = tuple([next(free) for _ in node.outputs])
    for target, tensor in zip(targets, node.outputs, strict=True):
        places.setdefault(tensor, target)
    scope = _ANYWHERE if where is None else device(where)
    return _Step(node.callee, args[0].place if single else -1, args, kwargs, targets, scope, node)


def filled(structure: Any, values: Sequence[Any]) -> Any:
    """Return arguments with the values of their slots."""
    return _nest.map_structure(
        lambda leaf: values[leaf.place] if isinstance(leaf, _Place) else leaf, structure
    )


def _only(result: Any) -> Any:
    """Return the result for one placeholder, out of a structure of one."""
    while isinstance(result, list | tuple | dict):
        (result,) = result.values() if isinstance(result, dict) else result
    return result


def _results_of(node: Node, result: Any) -> list[Any]:
    results = _nest.flatten(result)
    if len(results) != len(node.outputs):
        raise ValueError(
            f"The call of '{node.callee.name}' returned {len(results)} tensors, and "
            f"{len(node.outputs)} when the graph was created. Return the same number in every "
            "call."
        )
    return results


# -------------------------------------------------------------------------------------------- order

# Both orders are Keras': by the longest way to an output, and among equals in the order in which
# they are reached from the outputs. Nothing here recurs: a graph may be deeper than Python's stack.


class Order(NamedTuple):
    """The nodes between inputs and outputs, including those of inputs.

    Attributes:
        nodes: In an order in which they can be run.
        callees: What they call, each once, as a model lists its layers.
    """

    nodes: list[Node]
    callees: list[Any]


def order_of(inputs: Sequence[SymbolicTensor], outputs: Any) -> Order:
    """Return the nodes between inputs and outputs, in order.

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
    order = Order(nodes, [callees[callee] for callee in listed])
    _check_connected(nodes, inputs, outputs)
    _check_names_differ(order.callees)
    return order


def nodes_between(
    inputs: Iterable[SymbolicTensor], outputs: Iterable[SymbolicTensor]
) -> tuple[list[Node], dict[int, int]]:
    """Return the nodes that outputs need, sorted from the inputs.

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


def _check_connected(nodes: list[Node], inputs: Sequence[SymbolicTensor], outputs: Any) -> None:
    """Raise ValueError if an output depends on anything else than the inputs."""
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
    if not isinstance(structure, dict | list | tuple):
        yield path, structure
        return
    for key, part in structure.items() if isinstance(structure, dict) else enumerate(structure):
        yield from _with_paths(part, (*path, str(key)))


def _check_names_differ(callees: list[Any]) -> None:
    for name, count in Counter(callee.name for callee in callees).items():
        if count > 1:
            raise ValueError(
                f'The name "{name}" is used {count} times in the model. All operation names '
                "should be unique. Pass another `name` to one of the layers."
            )
