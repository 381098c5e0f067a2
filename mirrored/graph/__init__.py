"""Graphs of placeholders: functional models and other calls recorded before they run.

It knows nothing of layers: these are callees of nodes, as operations are. What only those
need who draw one is loaded then.
"""

from mirrored._late import late_module as _late_module
from mirrored.graph import entry as _entry  # noqa: F401  Calls on placeholders enter graphs by it.

_late_module(
    __name__,
    {
        "mirrored.graph.drawing": "Drawing",
        "mirrored.graph.inference": "results_of",
        "mirrored.graph.operations": "Operation",
        "mirrored.graph.part": "Part",
        "mirrored.graph.symbolic_tensor": "Node SymbolicTensor drawn_anywhere placeholders",
    },
)
