"""The figure that `History.plot` draws: pyplot shows it, and a notebook displays it once."""

from typing import NoReturn

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Curves = dict[str, tuple[list[int], list[float]]]


class HistoryFigure(Figure):
    """A figure of pyplot's that a notebook displays once."""

    def _ipython_display_(self) -> NoReturn:
        """Take the figure from pyplot, which would display it again at the end of the cell.

        Raises:
            NotImplementedError: Always, by which IPython displays it in the formats that are set.
        """
        if "inline" in plt.get_backend():
            plt.close(self)
        raise NotImplementedError


def draw(curves: Curves) -> Figure:
    """Return a figure with a plot for each value; a value and its ``val_`` share one.

    Args:
        curves: The epochs and the values, by name; at least one.
    """
    names = list(dict.fromkeys(name.removeprefix("val_") for name in curves))
    size = (4.5 * len(names), 3.5)
    figure = plt.figure(figsize=size, layout="constrained", FigureClass=HistoryFigure)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for key, label in ((name, "training"), (f"val_{name}", "validation")):
            if key in curves:
                epochs, values = curves[key]
                axes.plot(epochs, values, marker="." if len(values) == 1 else "", label=label)
        axes.set(xlabel="epoch", ylabel=name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if f"val_{name}" in curves:
            axes.legend()
    return figure
