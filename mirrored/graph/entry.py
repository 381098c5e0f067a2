"""Where calls on placeholders enter a graph: functions, indexing and pickling.

What a graph needs is loaded where the first one is drawn.
"""

from typing import Any

from mirrored._symbolic import set_maker
from mirrored.graph.tensor import SymbolicTensor, placeholders, set_indexing


def _node(function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    from mirrored.graph.calls import make_node  # Where the first graph is drawn.

    for tensor in placeholders((args, kwargs)):
        if tensor.draws is not None:  # Those of a graph that keeps its nodes itself.
            return tensor.draws(function, args, kwargs)

    return make_node(function, args, kwargs)


def _item(*args: Any) -> Any:
    from mirrored.graph.calls import get_item

    return get_item(*args)


def _reduced(tensor: SymbolicTensor) -> Any:
    from mirrored.graph.drawing import reduced

    return reduced(tensor)


SymbolicTensor.__reduce__ = _reduced  # type: ignore[method-assign, assignment]

set_maker(_node)

set_indexing(_item)
