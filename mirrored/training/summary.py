"""The table of a model's layers that `summary` prints.

Names, output shapes and numbers of parameters: what one checks before training.
"""

from typing import Any

from mirrored.graph import Node
from mirrored.layers import Layer
from mirrored.training.network import Network


def summary_lines(model: Network) -> list[str]:
    """Return the lines of the table; where layers are no chain it says what each is called on."""
    callees = model.operations or model.layers
    head = ["Layer (type)", "Output Shape", "Param #"]
    rows = [[f"{each.name} ({_kind(each)})", _shape_of(each), _size_of(each)] for each in callees]
    nodes = _branching(model)
    if nodes:
        head.append("Connected to")
        for row, each in zip(rows, callees, strict=True):
            row.append(_connections(each, nodes))
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [_line(row, widths) for row in [head, *rows]]
    rule = "-" * len(lines[0])
    total = sum(weight.size for weight in model.weights)
    trained = sum(weight.size for weight in model.trainable_weights)
    return [
        f'Model: "{model.name}"',
        rule,
        lines[0],
        rule,
        *lines[1:],
        rule,
        f"Total params: {total:,}",
        f"Trainable params: {trained:,}",
        f"Non-trainable params: {total - trained:,}",
    ]


def _line(row: list[str], widths: list[int]) -> str:
    aligned = [f"{row[0]:<{widths[0]}}", f"{row[1]:<{widths[1]}}", f"{row[2]:>{widths[2]}}"]
    return "  ".join([*aligned, *row[3:]])


def _branching(model: Network) -> set[Node]:
    """Return the nodes of a functional model whose layers are no chain; else none."""
    part = model._part
    if part is None:
        return set()
    nodes = [node for group in part.order.by_depth for node in group]
    chain = all(len(group) == 1 for group in part.order.by_depth) and all(
        len(node.inputs) <= 1 for node in nodes
    )
    return set() if chain and len(part.order.callees) == len(nodes) else set(nodes)


def _connections(callee: Any, nodes: set[Node]) -> str:
    """Return what a layer is called on, with the numbers of the calls and of their results."""
    found = [
        f"{before.callee.name}[{before.callee._inbound_nodes.index(before)}][{tensor.index}]"
        for node in callee._inbound_nodes
        if node in nodes
        for tensor in node.inputs
        for before in [tensor.node]
    ]
    return ", ".join(found) or "-"


def _kind(callee: Any) -> str:
    kind: str = type(callee).__name__ if isinstance(callee, Layer) else callee.kind
    return kind


def _shape_of(callee: Any) -> str:
    if not isinstance(callee, Layer):
        return ", ".join(str(each._shape) for each in callee._inbound_nodes[0].outputs)
    try:
        return str(callee.output_shape)
    except AttributeError:  # A layer that was built but never called.
        return "?"


def _size_of(callee: Any) -> str:
    if not isinstance(callee, Layer):
        return "0"
    size = sum(weight.size for weight in callee.weights)
    return f"{size:,}" if callee.built else f"{size:,} (unbuilt)"
