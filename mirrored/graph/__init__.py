"""Graphs of placeholders: functional models, and whatever else is drawn before it is run.

It knows nothing of layers: these are callees of nodes, as operations are. What only those
need who draw one is loaded then.
"""

import typing as _typing

from mirrored._late import late_module as _late_module
from mirrored._symbolic import set_maker as _set_maker
from mirrored.graph.tensor import Node as Node
from mirrored.graph.tensor import SymbolicTensor as SymbolicTensor
from mirrored.graph.tensor import drawn_anywhere as drawn_anywhere
from mirrored.graph.tensor import placeholders as placeholders
from mirrored.graph.tensor import set_indexing as _set_indexing

if _typing.TYPE_CHECKING:
    from mirrored.graph.calls import Operation as Operation
    from mirrored.graph.drawing import Drawing as Drawing
    from mirrored.graph.inference import results_of as results_of
    from mirrored.graph.part import Part as Part

_late_module(
    __name__,
    {
        "mirrored.graph.calls": "Operation",
        "mirrored.graph.drawing": "Drawing",
        "mirrored.graph.inference": "results_of",
        "mirrored.graph.part": "Part",
    },
)


def _node(function: _typing.Any, args: tuple[_typing.Any, ...], kwargs: _typing.Any) -> _typing.Any:
    from mirrored.graph.calls import make_node  # Where the first graph is drawn.

    for tensor in placeholders((args, kwargs)):
        if tensor.draws is not None:  # Those of a graph that keeps its nodes itself.
            return tensor.draws(function, args, kwargs)

    return make_node(function, args, kwargs)


def _item(*args: _typing.Any) -> _typing.Any:
    from mirrored.graph.calls import get_item

    return get_item(*args)


def _reduced(tensor: SymbolicTensor) -> _typing.Any:
    from mirrored.graph.drawing import reduced

    return reduced(tensor)


SymbolicTensor.__reduce__ = _reduced  # type: ignore[method-assign, assignment]
_set_maker(_node)
_set_indexing(_item)
