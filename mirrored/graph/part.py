"""A part of a graph: computes some placeholders' values from those of others.

It is looked up once, so that a run is a loop over calls whose arguments are found by their places.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored.devices import device
from mirrored.graph.order import Order, order_of
from mirrored.graph.tensor import Node, SymbolicTensor
from mirrored.ops.tensor import Tensor

_ANYWHERE = nullcontext()


class _Place:
    """Stands among arguments for the value in a place."""

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
    """The calls that lead from inputs to outputs.

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
        self.order: Order = (
            order_of(self.inputs, outputs) if nodes is None else Order(list(nodes), [], [])
        )
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
        """The nodes that are run, in order."""
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
        """Return what becomes of the outputs where each call is made by a function.

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
    """Return a node's step on a device, and give its results places among those that are free."""

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
    """Return arguments with the values in their places."""
    return _nest.map_structure(
        lambda leaf: values[leaf.place] if isinstance(leaf, _Place) else leaf, structure
    )


def _only(result: Any) -> Any:
    """Return what a call returned one placeholder for, out of a structure of one."""
    while isinstance(result, list | tuple | dict):
        (result,) = result.values() if isinstance(result, dict) else result
    return result


def _results_of(node: Node, result: Any) -> list[Any]:
    results = _nest.flatten(result)
    if len(results) != len(node.outputs):
        raise ValueError(
            f"The call of '{node.callee.name}' returned {len(results)} tensors, and "
            f"{len(node.outputs)} when the graph was made. Return as many in every call."
        )
    return results
