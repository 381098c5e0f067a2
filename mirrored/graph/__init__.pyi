# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.graph import entry as _entry
from mirrored.graph.drawing import Drawing as Drawing
from mirrored.graph.symbolic_tensor import Node as Node
from mirrored.graph.operations import Operation as Operation
from mirrored.graph.part import Part as Part
from mirrored.graph.symbolic_tensor import SymbolicTensor as SymbolicTensor
from mirrored.graph.symbolic_tensor import drawn_anywhere as drawn_anywhere
from mirrored.graph.symbolic_tensor import placeholders as placeholders
from mirrored.graph.inference import results_of as results_of
