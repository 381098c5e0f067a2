"""The table of a model's layers that `summary` prints, or shows in a notebook.

Names, output shapes and numbers of parameters: what one checks before training.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from mirrored._html import table, titled
from mirrored._naming import one_line
from mirrored.graph import Node
from mirrored.layers import Layer
from mirrored.training.model_state import is_model
from mirrored.training.progress import in_notebook
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.training.model import Model

_NESTED = "   "  # What names of layers of models within models begin with, for each model.
_LEAST_WIDTH = 4
_RIGHT = 2  # The column of numbers.


@dataclass(frozen=True)
class Summary:
    """What is shown of a model.

    Attributes:
        title: The line above the table.
        head: The names of its columns.
        rows: A row a layer.
        totals: The lines below it.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    totals: list[str]

    def text(self, line_length: int | None, positions: Sequence[float] | None) -> str:
        """Return it as lines; cells go over several where the widths that are given ask for it.

        Args:
            line_length: The characters of a line; None: as many as its longest cells have.
            positions: Where each column ends, as parts of a line; None: as its longest cell asks.
        """
        table = [self.head, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.head))]
        if line_length is not None or positions is not None:
            total = line_length or sum(widths) + 2 * (len(widths) - 1)
            widths = _given_widths(widths, total, positions)
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        lines = [_lines(row, widths) for row in table]
        shown = [self.title, rule, *lines[0], rule]
        shown += [line for row_lines in lines[1:] for line in row_lines]
        return "\n".join([*shown, rule, *self.totals])

    def html(self) -> str:
        """Return it as HTML."""
        totals = "".join(f"<div>{escape(total)}</div>" for total in self.totals)
        return titled(self.title, "", table(self.rows, self.head, right=(_RIGHT,)), totals)


def summarize(
    model: "Model",
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> Summary:
    """Return what is shown of a model; `Model.summary` says what the arguments mean."""
    callees = list(model.operations or model.layers)
    nodes = _branching(model)
    rows = []
    for callee, depth in _nested(_between(callees, layer_range), expand_nested):
        prefix = f"{_NESTED * depth}└ " if depth else ""
        kind = type(callee).__name__ if isinstance(callee, Layer) else callee.kind
        name = f"{prefix}{one_line(callee.name)} ({kind})"
        row = [name, _shape_of(callee), _size_of(callee)]
        if nodes:
            row.append(_connections(callee, nodes))
        if show_trainable:
            weighted = isinstance(callee, Layer) and bool(callee.weights)
            row.append(("Y" if callee.trainable else "N") if weighted else "-")
        rows.append(row)
    head = ["Layer (type)", "Output Shape", "Param #"]
    head += ["Connected to"] * bool(nodes) + ["Trainable"] * show_trainable
    return Summary(f'Model: "{one_line(model.name)}"', head, rows, _totals(model))


def show(table: Summary, text: str, print_fn: Callable[[str], Any] | None) -> None:
    """Give a table's text to a function, or print it, or show the table in a notebook."""
    if print_fn is not None:
        print_fn(text)
    elif in_notebook():
        from IPython.display import HTML, display

        display(HTML(table.html()))
    else:
        print(text)


def _totals(model: "Model") -> list[str]:
    optimizer = getattr(model, "optimizer", None)
    slots = optimizer.variables if optimizer is not None and optimizer.built else []
    groups = {
        "Total": [*model.weights, *slots],
        "Trainable": model.trainable_weights,
        "Non-trainable": model.non_trainable_weights,
    }
    if slots:
        groups["Optimizer"] = slots
    return [f"{name} params: {_sized(variables)}" for name, variables in groups.items()]


def _sized(variables: Iterable[Variable]) -> str:
    """Return how many numbers variables have, and what memory they take."""
    all_variables = list(variables)
    size = float(sum(variable.size * variable.dtype.itemsize for variable in all_variables))
    units = ["B", "KB", "MB", "GB", "TB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{sum(variable.size for variable in all_variables):,} ({size:.2f} {units[0]})"


def _given_widths(
    natural: Sequence[int], line_length: int, positions: Sequence[float] | None
) -> list[int]:
    gaps = 2 * (len(natural) - 1)
    if positions is None:
        ends = [sum(natural[: i + 1]) / sum(natural) for i in range(len(natural))]
    elif len(positions) != len(natural):
        raise ValueError(
            f"`positions` needs one end for each of the {len(natural)} columns. Received: "
            f"positions={positions}"
        )
    else:
        ends = list(positions)
    places = [0, *(int(end * (line_length - gaps)) for end in ends)]
    widths = [end - start for start, end in itertools.pairwise(places)]
    if min(widths) < _LEAST_WIDTH:
        raise ValueError(
            "Insufficient console width to print summary. Received: "
            f"line_length={line_length}, positions={positions}"
        )
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return a row, as lines in which each cell has its width."""
    folded = [
        [cell[start : start + width] for start in range(0, max(1, len(cell)), width)]
        for cell, width in zip(row, widths, strict=True)
    ]
    lines = []
    for index in range(max(map(len, folded))):
        parts = [part[index] if index < len(part) else "" for part in folded]
        aligned = [
            f"{part:>{width}}" if place == _RIGHT else f"{part:<{width}}"
            for place, (part, width) in enumerate(zip(parts, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())
    return lines


def _between(callees: list[Any], names: Sequence[str] | None) -> list[Any]:
    """Return those from the first that one pattern fits to the last that another one fits."""
    if names is None:
        return callees
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"`layer_range` must have two names or patterns. Received: layer_range={names}"
        )
    ends = [
        [place for place, item in enumerate(callees) if re.match(name, item.name)] for name in names
    ]
    if not all(ends):
        raise ValueError(
            "Passed layer_names do not match the layer names in the model. Received: "
            f"layer_range={names}"
        )
    first, last = ends
    if first[0] > last[-1]:
        first, last = last, first
    return callees[first[0] : last[-1] + 1]


def _nested(callees: Iterable[Any], expand: bool) -> list[tuple[Any, int]]:
    """Return layers, with those of models among them if asked for, and how deep each is."""
    layers: list[tuple[Any, int]] = []
    waiting = [(item, 0) for item in callees][::-1]
    while waiting:
        callee, depth = waiting.pop()
        layers.append((callee, depth))
        if expand and is_model(callee):
            waiting += [(layer, depth + 1) for layer in callee.layers][::-1]
    return layers


def _branching(model: "Model") -> set[Node]:
    """Return the nodes of a functional model whose layers are no chain; else none."""
    if model.__state__.graph is None:
        return set()
    nodes, callees = model.__state__.graph.part.order
    pairs = itertools.pairwise(nodes)
    is_chain = all([tensor.node for tensor in node.inputs] == [before] for before, node in pairs)
    return set() if is_chain and len(callees) == len(nodes) else set(nodes)


def _connections(callee: Any, nodes: set[Node]) -> str:
    """Return what a layer is called on, with the numbers of the calls and of their results."""
    sources = [
        f"{one_line(before.callee.name)}[{before.callee._inbound_nodes.index(before)}][{tensor.index}]"
        for node in callee._inbound_nodes
        if node in nodes
        for tensor in node.inputs
        for before in [tensor.node]
    ]
    return ", ".join(sources) or "-"


def _shape_of(callee: Any) -> str:
    if not isinstance(callee, Layer):
        return ", ".join(str(tensor._shape) for tensor in callee._inbound_nodes[0].outputs)
    try:
        return str(callee.output_shape)
    except AttributeError:  # A layer that was built but never called.
        return "?"


def _size_of(callee: Any) -> str:
    if not isinstance(callee, Layer):
        return "0"
    size = sum(weight.size for weight in callee.weights)
    return f"{size:,}" if callee.built else f"{size:,} (unbuilt)"
