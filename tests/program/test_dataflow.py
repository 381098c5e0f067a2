"""Values and nodes: parts of memory, and what goes when a graph goes."""

import gc
import weakref
from typing import Any

import numpy as np

from mirrored import devices, ops
from mirrored.program.dataflow import SHARED, Graph, Node, Value

SPEC = ops.TensorSpec((4, 3), ops.float64)


def value(spec: ops.TensorSpec = SPEC, replica: int = SHARED) -> Value:
    return Value(spec, devices.get_device("CPU:0"), replica)


def test_sizes() -> None:
    each = value()
    assert (each.size, each.nbytes, each.base, each.whole) == (12, 96, each, True)
    scalar = value(ops.TensorSpec((), ops.bool_))
    assert (scalar.size, scalar.nbytes) == (1, 1)
    assert value(ops.TensorSpec((0, 3), ops.float32)).nbytes == 0


def test_parts_of_parts() -> None:
    base = value(replica=2)
    rows = base.part(ops.TensorSpec((3, 3), ops.float64), 3)
    row = rows.part(ops.TensorSpec((3,), ops.float64), 6)
    assert (row.base, row.offset, row.replica, row.size) == (base, 9, 2, 3)
    assert not rows.whole
    assert not row.whole
    assert base.part(ops.TensorSpec((12,), ops.float64)).whole
    assert base.part(ops.TensorSpec((12,), ops.float64)).base is base


def test_a_graph_goes_when_it_is_let_go_of(record: Any) -> None:
    """Without the garbage collector: models are trained, compiled and dropped in loops."""
    x = np.ones((2, 3), np.float32)
    recorded = record(lambda x: [ops.tanh(x) @ ops.transpose(x)], [x])
    assert isinstance(recorded.graph, Graph)
    nodes = [weakref.ref(node) for node in recorded.graph.nodes]
    gc.disable()
    try:
        recorded.graph = recorded.program = None
        assert [node() for node in nodes] == [None] * len(nodes)
    finally:
        gc.enable()


def test_a_node_is_where_its_result_is() -> None:
    out = value()
    node = Node(ops.OPS["Neg"], (value(),), {}, out, SHARED)
    out.made_by = weakref.ref(node)
    assert node.device is devices.get_device("CPU:0")
    assert out.part(SPEC).node is node
    assert value().node is None
