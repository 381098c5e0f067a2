"""Graphs of placeholders: functional models, and whatever else is drawn before it is run.

It knows nothing of layers: these are callees of nodes, as operations are.
"""

from mirrored.graph.calls import Operation as Operation
from mirrored.graph.drawing import Drawing as Drawing
from mirrored.graph.inference import results_of as results_of
from mirrored.graph.part import Part as Part
from mirrored.graph.part import map_leaves as map_leaves
from mirrored.graph.tensor import Node as Node
from mirrored.graph.tensor import SymbolicTensor as SymbolicTensor
from mirrored.graph.tensor import placeholders as placeholders
