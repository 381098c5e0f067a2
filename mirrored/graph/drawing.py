"""A graph as a list of nodes, to rebuild it in another process or from other inputs.

As they are each placeholder holds the one before, so a deep graph would take more calls to copy or
to pickle than Python has.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored.devices import DeviceSpec
from mirrored.graph.part import nodes_between
from mirrored.graph.symbolic_tensor import Node, Shape, SymbolicTensor


class _Number:
    """The number of a placeholder, in a drawing."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Call(NamedTuple):
    """A node of a drawing, with numbers instead of placeholders."""

    callee: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    structure: Any
    device: DeviceSpec | None


class Drawing:
    """The nodes that lead to some placeholders.

    Args:
        inputs: The placeholders that it does not look behind; those of inputs it has itself.
        outputs: The placeholders that it leads to.
    """

    def __init__(self, inputs: Sequence[SymbolicTensor], outputs: Sequence[SymbolicTensor]) -> None:
        self._numbers: dict[SymbolicTensor, int] = {}
        self._placeholders: list[tuple[Shape, Any, str]] = []
        self._inputs = [self._number(input_) for input_ in inputs]
        nodes, _ = nodes_between(inputs, (*inputs, *outputs))
        self._calls = [
            _Call(
                node.callee,
                _nest.map_structure(self._numbered, node.args),
                _nest.map_structure(self._numbered, node.kwargs),
                _nest.map_structure(self._numbered, node.structure),
                node.device,
            )
            for node in nodes
        ]
        self._outputs = [self._number(output) for output in outputs]

    def _number(self, tensor: SymbolicTensor) -> int:
        if tensor not in self._numbers:
            self._numbers[tensor] = len(self._placeholders)
            self._placeholders.append((tuple(tensor._shape), tensor._dtype, tensor.name))
        return self._numbers[tensor]

    def _numbered(self, leaf: Any) -> Any:
        return _Number(self._number(leaf)) if isinstance(leaf, SymbolicTensor) else leaf

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_numbers": {}}

    def drawn(
        self, inputs: Sequence[SymbolicTensor] | None = None, suffix: str = ""
    ) -> tuple[list[SymbolicTensor], list[SymbolicTensor]]:
        """Return the inputs and the outputs of new nodes, copies of the nodes.

        Args:
            inputs: Tensors to use instead of the inputs; None: placeholders like them.
            suffix: What the names of the other placeholders end with.
        """
        tensors = [
            SymbolicTensor(shape, dtype, name=name + suffix)
            for shape, dtype, name in self._placeholders
        ]
        for number, tensor in zip(self._inputs, () if inputs is None else inputs, strict=False):
            tensors[number] = tensor
        taken = set() if inputs is None else set(inputs)

        def placed(leaf: Any) -> Any:
            return tensors[leaf.number] if isinstance(leaf, _Number) else leaf

        def result(leaf: _Number) -> SymbolicTensor:
            tensor = tensors[leaf.number]
            # A result that is given has a node already.
            return SymbolicTensor(tensor._shape, tensor._dtype) if tensor in taken else tensor

        for call in self._calls:
            if not (call.args or call.kwargs) and tensors[call.structure.number] in taken:
                continue
            node = Node(
                call.callee,
                _nest.map_structure(placed, call.args),
                _nest.map_structure(placed, call.kwargs),
                _nest.map_structure(result, call.structure),
            )
            node.device = call.device
        return [tensors[key] for key in self._inputs], [tensors[key] for key in self._outputs]


def _alone(drawing: Drawing) -> SymbolicTensor:
    return drawing.drawn()[1][0]


def reduced(tensor: SymbolicTensor) -> Any:
    """Return the state that a pickle has of a placeholder: the nodes that create it."""
    return _alone, (Drawing([], [tensor]),)
