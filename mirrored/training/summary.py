"""The table of a model's layers that `summary` prints.

Names, output shapes and numbers of parameters: what one checks before training.
"""

from mirrored.layers import Layer
from mirrored.training.network import Network


def summary_lines(model: Network) -> list[str]:
    """Return the lines of the table."""
    head = ("Layer (type)", "Output Shape", "Param #")
    rows = [
        (f"{layer.name} ({type(layer).__name__})", _shape_of(layer), _size_of(layer))
        for layer in model.layers
    ]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(3)]
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


def _line(row: tuple[str, str, str], widths: list[int]) -> str:
    return f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}"


def _shape_of(layer: Layer) -> str:
    try:
        return str(layer.output_shape)
    except AttributeError:  # A layer that was built but never called.
        return "?"


def _size_of(layer: Layer) -> str:
    size = sum(weight.size for weight in layer.weights)
    return f"{size:,}" if layer.built else f"{size:,} (unbuilt)"
