"""The entry points by which calls on placeholders are added to a graph.

What a graph needs is loaded where the first one is drawn.
"""

from typing import Any

from mirrored.graph.symbolic_tensor import SymbolicTensor


def _node(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from mirrored.graph.operations import make_node  # Where the first graph is drawn.

    return make_node(function, args, kwargs)


def _reduced(tensor: SymbolicTensor) -> Any:
    from mirrored.graph.drawing import reduced

    return reduced(tensor)


SymbolicTensor.draws = staticmethod(_node)

SymbolicTensor.__reduce__ = _reduced  # type: ignore[method-assign, assignment]
