"""The entry points by which calls on placeholders are added to a graph.

What a graph needs is loaded where the first one is drawn.
"""

import copyreg
from typing import Any

from mirrored._symbolic import draw_call
from mirrored.graph.symbolic_tensor import SymbolicTensor


@draw_call.register(SymbolicTensor)
def _node(_: SymbolicTensor, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from mirrored.graph.operations import make_node  # Where the first graph is drawn.

    return make_node(function, args, kwargs)


def reduced(tensor: SymbolicTensor) -> Any:
    """Return the state that a pickle has of a placeholder.

    Args:
        tensor: The placeholder.
    """
    from mirrored.graph import drawing

    return drawing.reduced(tensor)


copyreg.pickle(SymbolicTensor, reduced)
