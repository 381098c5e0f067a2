"""The figure that `History.plot` draws."""

from mirrored._drawing import Figure, label_ends, picture, styled
from mirrored._naming import shortened

Curves = dict[str, tuple[list[int], list[float]]]


@styled
def draw(curves: Curves) -> Figure:
    """Return a figure with a plot for each value; a value and its ``val_`` share one.

    Args:
        curves: The epochs and the values, by name; at least one.
    """
    names = list(dict.fromkeys(name.removeprefix("val_") for name in curves))
    figure, plots = picture(len(names), 4.5, 3.0)
    for axes, name in zip(plots, names, strict=True):
        ends = []
        for key, label in ((name, "training"), (f"val_{name}", "validation")):
            if key in curves:
                epochs, values = curves[key]
                marker = "." if len(values) == 1 else ""
                (line,) = axes.plot(epochs, values, marker=marker, label=label)
                ends.append((values[-1], label, line.get_color()))
        axes.set(xlabel="epoch", ylabel=shortened([name])[0])
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y")
        if f"val_{name}" in curves:
            label_ends(axes, ends)
    return figure
