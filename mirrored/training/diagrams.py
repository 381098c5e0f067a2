"""Pictures of models: a box per layer, and lines between them. pydot draws them, or SVG does.

Boxes and edges are found once; pydot's graph and the SVG are made of them.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple

from mirrored import _nest
from mirrored._arguments import explain_functions
from mirrored._files import as_path, replacing
from mirrored._logging import logger
from mirrored._types import PathLike
from mirrored.layers import Layer
from mirrored.layers.shapes import shapes_in
from mirrored.training.model import Model
from mirrored.training.sequential import Sequential

_LINE, _LETTER, _GAP, _MARGIN = 20, 7.5, 40, 12  # Pixels of the SVG.


@dataclass
class Diagram:
    """The boxes of a model.

    Attributes:
        boxes: The lines of each box, by layer; the first one is its title.
        edges: Pairs of layers.
        groups: The names of models within models, with their layers.
    """

    boxes: dict[Any, list[str]] = field(default_factory=dict)
    edges: list[tuple[Any, Any]] = field(default_factory=list)
    groups: list[tuple[str, list[Any]]] = field(default_factory=list)


class _Shown(NamedTuple):
    """What a layer's box shows."""

    shapes: bool
    dtype: bool
    names: bool
    activations: bool
    trainable: bool


def plot_model(
    model: Model,
    to_file: PathLike = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
) -> Any:
    """Write a picture of a model to a file.

    A name that ends in `.svg` needs nothing else. For others pydot and graphviz draw; where pydot
    is not installed, an SVG is written instead of a PNG, with a warning.

    Args:
        model: The model, which is built.
        to_file: The file; its ending says the format.
        show_shapes: Whether to show the shapes of inputs and outputs.
        show_dtype: Whether to show the dtypes of outputs.
        show_layer_names: Whether to show layers' names.
        rankdir: "TB", from top to bottom, or "LR", from left to right.
        expand_nested: Whether to show the layers of models within models.
        dpi: The dots per inch of pydot's pictures.
        show_layer_activations: Whether to show activations.
        show_trainable: Whether to show which layers are trainable.
        splines: How pydot draws lines.

    Returns:
        IPython's image where it is installed, else None.

    Raises:
        ValueError: The model is not built.
        ImportError: The format needs pydot, which is not installed.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(2)])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.svg"
        >>> _ = mr.keras.utils.plot_model(model, path, show_shapes=True)
        >>> "Output shape: (None, 2)" in path.read_text()
        True
    """
    path = as_path(to_file, "picture of a model")
    shown = _Shown(
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable
    )
    stem, ending = os.path.splitext(path)
    if ending in ("", ".png") and find_spec("pydot") is None:
        logger.warning(
            "pydot is not installed, so %s.svg is written instead of %s. For formats other than "
            "SVG, run pip install pydot, and install graphviz.",
            stem,
            path,
        )
        path, ending = f"{stem}.svg", ".svg"
    if ending == ".svg":
        with replacing(path, "picture of a model") as file:
            file.write(_svg(_diagram(model, expand_nested, shown), rankdir).encode())
    else:
        dot = _dot(_diagram(model, expand_nested, shown), rankdir=rankdir, dpi=dpi, splines=splines)
        dot.write(path, format=ending[1:] or "png")
    try:
        from IPython import display
    except ImportError:
        return None
    if ending == ".svg":
        return display.SVG(filename=path)
    return None if ending == ".pdf" else display.Image(filename=path)


def model_to_dot(
    model: Model,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    subgraph: bool = False,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
) -> Any:
    """Return a model as pydot's graph.

    Args:
        model: The model, which is built.
        show_shapes: Whether to show the shapes of inputs and outputs.
        show_dtype: Whether to show the dtypes of outputs.
        show_layer_names: Whether to show layers' names.
        rankdir: "TB", from top to bottom, or "LR", from left to right.
        expand_nested: Whether to show the layers of models within models.
        dpi: The dots per inch.
        subgraph: Whether to return a cluster, for another graph.
        show_layer_activations: Whether to show activations.
        show_trainable: Whether to show which layers are trainable.
        splines: How lines are drawn.

    Raises:
        ValueError: The model is not built.
        ImportError: pydot is not installed.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.model_to_dot(mr.Sequential([mr.layers.Dense(2)]))
        Traceback (most recent call last):
        ValueError: This model has not yet been built. Build the model first by calling ...
    """
    shown = _Shown(
        show_shapes, show_dtype, show_layer_names, show_layer_activations, show_trainable
    )
    diagram = _diagram(model, expand_nested, shown)
    cluster = model.name if subgraph else None
    return _dot(diagram, cluster, rankdir=rankdir, dpi=dpi, splines=splines)


def _dot(diagram: Diagram, name: str | None = None, **options: Any) -> Any:
    """Return a diagram as pydot's graph, or as a cluster of a name."""
    try:
        import pydot  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError(
            "You must install pydot (`pip install pydot`) for `model_to_dot` to work. "
            "`plot_model` writes a file that ends in .svg without it."
        ) from None

    def cluster_of(name: str) -> Any:
        return pydot.Cluster(graph_name=name, label=name, style="dashed", labeljust="l")

    if name is not None:
        dot = cluster_of(name)
    else:
        dot = pydot.Dot(concentrate=True, **options)
        dot.set_node_defaults(shape="record")
    clusters = {}
    for group, layers in diagram.groups:
        cluster = cluster_of(group)
        dot.add_subgraph(cluster)
        clusters.update(dict.fromkeys(layers, cluster))
    for layer, lines in diagram.boxes.items():
        label = "{" + "|".join(map(_escaped, lines)) + "}"
        clusters.get(layer, dot).add_node(pydot.Node(str(id(layer)), label=label))
    for source, target in diagram.edges:
        dot.add_edge(pydot.Edge(str(id(source)), str(id(target))))
    return dot


def _escaped(text: str) -> str:
    """Return text as a field of a record of Graphviz."""
    return "".join(f"\\{character}" if character in '{}|<>"\\' else character for character in text)


# ---------------------------------------------------------------------------- boxes and edges


def _diagram(model: Model, expand: bool, shown: _Shown) -> Diagram:
    if not model.built:
        raise ValueError(
            "This model has not yet been built. Build the model first by calling `build()` or by "
            "calling the model on a batch of data."
        )
    diagram = Diagram()
    _add(diagram, model, expand, shown)
    return diagram


def _add(diagram: Diagram, model: Model, expand: bool, shown: _Shown) -> list[Any]:
    """Add a model's boxes and edges, and return its layers."""
    inner: list[Any] = []
    callees = _callees(model)
    for callee in callees:
        if expand and isinstance(callee, Model) and _callees(callee) != [callee]:
            layers = _add(diagram, callee, expand, shown)
            diagram.groups.append((callee.name, layers))
            inner += layers
        elif callee not in diagram.boxes:
            diagram.boxes[callee] = _lines(callee, shown)
            inner.append(callee)
    for (source, output), (target, place) in _edges(model, callees):
        if expand:
            source = _innermost(source, "outputs", output)
            target = _innermost(target, "inputs", place)
        if source is not target and (source, target) not in diagram.edges:
            diagram.edges.append((source, target))
    return inner


def _callees(model: Model) -> list[Any]:
    """Return what a model calls; a model with a `call` of its own is one box."""
    if model.__state__.graph is not None:
        return list(model.operations)
    return list(model.layers) if isinstance(model, Sequential) else [model]


def _edges(model: Model, callees: list[Any]) -> Iterator[tuple[tuple[Any, int], tuple[Any, int]]]:
    """Yield the edges: a callee with the number of its output, and one with that of its input."""
    if model.__state__.graph is None:
        yield from (((source, 0), (target, 0)) for source, target in itertools.pairwise(callees))
        return
    for node in model.__state__.graph.part.order.nodes:
        for index, tensor in enumerate(node.inputs):
            yield (tensor.node.callee, tensor.index), (node.callee, index)


def _innermost(callee: Any, side: str, index: int) -> Any:
    """Return the layer within models that takes one of their inputs, or makes an output."""
    while isinstance(callee, Model) and _callees(callee) != [callee]:
        if callee.__state__.graph is None:
            callee = callee.layers[0 if side == "inputs" else -1]
        else:
            tensor = getattr(callee, side)[index]
            callee, index = tensor.node.callee, tensor.index
    return callee


def _lines(callee: Any, shown: _Shown) -> list[str]:
    """Return the lines of a layer's box."""
    kind = type(callee).__name__ if isinstance(callee, Layer) else callee.kind
    lines = [f"{callee.name} ({kind})" if shown.names else kind]
    activation = getattr(callee, "activation", None)
    if shown.activations and activation is not None:
        lines.append(f"Activation: {getattr(activation, '__name__', activation)}")
    if shown.shapes:
        if kind != "InputLayer":
            lines.append(f"Input shape: {_shapes(callee, 'input')}")
        lines.append(f"Output shape: {_shapes(callee, 'output')}")
    if shown.dtype:
        lines.append(f"Output dtype: {_dtypes(callee)}")
    if shown.trainable and isinstance(callee, Layer) and callee.weights:
        lines.append("Trainable" if callee.trainable else "Non-trainable")
    return lines


def _shapes(callee: Any, which: str) -> str:
    if not isinstance(callee, Layer):
        node = callee._inbound_nodes[0]
        tensors = node.inputs if which == "input" else node.outputs
        return ", ".join(str(tensor._shape) for tensor in tensors)
    try:
        return ", ".join(str(shape) for shape in shapes_in(getattr(callee, f"{which}_shape")))
    except AttributeError:  # It was built but never called.
        return "?"


def _dtypes(callee: Any) -> str:
    if isinstance(callee, Layer):
        known = _nest.flatten(callee.__state__.output_dtype)
        return ", ".join(activation.name for activation in known if activation is not None) or "?"
    return ", ".join(output._dtype.name for output in callee._inbound_nodes[0].outputs)


# ---------------------------------------------------------------------------- SVG


def _svg(diagram: Diagram, rankdir: str) -> str:
    """Return an SVG, in which each layer is one row, or column, behind those that it needs."""
    if rankdir not in ("TB", "LR"):
        raise ValueError(f'`rankdir` of an SVG must be "TB" or "LR". Received: rankdir={rankdir!r}')
    across = rankdir == "LR"
    sizes: dict[Any, tuple[float, float]] = {
        layer: (max(map(len, lines)) * _LETTER + 2 * _MARGIN, len(lines) * _LINE + _MARGIN)
        for layer, lines in diagram.boxes.items()
    }
    places, width, height = _places(diagram, sizes, across)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        '<defs><marker id="end" markerWidth="9" markerHeight="9" refX="8" refY="4" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#757b83"/></marker></defs>',
    ]
    for name, layers in diagram.groups:
        left = min(places[layer][0] for layer in layers) - _MARGIN
        top = min(places[layer][1] for layer in layers) - _LINE
        right = max(places[layer][0] + sizes[layer][0] for layer in layers) + _MARGIN
        bottom = max(places[layer][1] + sizes[layer][1] for layer in layers) + _MARGIN
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}" fill="none" stroke="gray" stroke-dasharray="4"/>'
            f'<text x="{left + 4:.1f}" y="{top + 14:.1f}" fill="gray">{escape(name)}</text>'
        )
    for source, target in diagram.edges:
        (x, y), (w, h) = places[source], sizes[source]
        (p, q), (v, z) = places[target], sizes[target]
        begin, end = (x + w / 2, y + h), (p + v / 2, q)
        if across:
            begin, end = (x + w, y + h / 2), (p, q + z / 2)
        parts.append(
            f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            'stroke="#757b83" marker-end="url(#end)"/>'
        )
    for layer, lines in diagram.boxes.items():
        (x, y), (w, h) = places[layer], sizes[layer]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="white" '
            'rx="4" stroke="#2a7fc1"/>'
        )
        for number, line in enumerate(lines):
            weight = "" if number else ' font-weight="bold"'
            parts.append(
                f'<text x="{x + w / 2:.1f}" y="{y + (number + 0.9) * _LINE:.1f}" '
                f'text-anchor="middle"{weight}>{escape(line)}</text>'
            )
    return "\n".join([*parts, "</svg>\n"])


def _places(
    diagram: Diagram, sizes: dict[Any, tuple[float, float]], across: bool
) -> tuple[dict[Any, tuple[float, float]], float, float]:
    """Return where boxes are, and the size of the whole."""
    along, beside = (0, 1) if across else (1, 0)
    depths = dict.fromkeys(diagram.boxes, 0)
    for _ in diagram.boxes:  # Longest paths: as often as there may be boxes on one.
        deeper = [
            (source, target) for source, target in diagram.edges if depths[target] <= depths[source]
        ]
        if not deeper:
            break
        for source, target in deeper:
            depths[target] = max(depths[target], depths[source] + 1)
    rows: dict[int, list[Any]] = {}
    for layer, depth in depths.items():
        rows.setdefault(depth, []).append(layer)
    spans = {
        depth: sum(sizes[layer][beside] for layer in row) + _GAP * (len(row) - 1)
        for depth, row in rows.items()
    }
    widest = max(spans.values(), default=0.0)
    places: dict[Any, tuple[float, float]] = {}
    position = float(_GAP)
    for depth in sorted(rows):
        offset = _GAP + (widest - spans[depth]) / 2
        for layer in rows[depth]:
            places[layer] = (position, offset) if across else (offset, position)
            offset += sizes[layer][beside] + _GAP
        position += max(sizes[layer][along] for layer in rows[depth]) + _GAP
    whole = (position, widest + 2 * _GAP)
    return places, *(whole if across else whole[::-1])


explain_functions(__name__)
