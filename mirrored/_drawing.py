"""The style of all pictures, which matplotlib draws.

Backgrounds are transparent, and text is neither light nor dark: the same file is legible on paper,
on a light page and on a dark page. Colour-blind readers can tell the colors apart.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from mirrored._extras import package
from mirrored._naming import shortened

try:
    from matplotlib import pyplot as plt
except ImportError:
    package("matplotlib", "plot", "Plots are drawn by")
    raise
from cycler import cycler
from matplotlib import rcParamsDefault
from matplotlib.axes import Axes as Axes
from matplotlib.figure import Figure as Figure

INK = "#757b83"
LIMIT = "#d1403a"  # A limit, and nothing else.
BLUE, ORANGE, GREEN, PINK, VIOLET, BROWN, _, _ = COLORS = (
    "#2a7fc1",
    "#d46a00",
    "#159a80",
    "#b0579d",
    "#7f58f0",
    "#8a5a44",
    "#2f7a2f",
    "#6b7280",
)
GREY = "#9aa0a6"

_STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=[*COLORS, GREY]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.facecolor": "none",
    "font.size": 10.0,
    "grid.alpha": 0.3,
    "grid.color": INK,
    "hatch.color": "white",
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 2.0,
    "text.color": INK,
    "text.parse_math": False,  # Names may have dollar signs.
    "xtick.color": INK,
    "ytick.color": INK,
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Picture(Figure):
    """A figure of pyplot's that a notebook displays once."""

    def _ipython_display_(self) -> NoReturn:
        """Take the figure from pyplot, which would display it again at the end of the cell.

        Raises:
            NotImplementedError: Always, by which IPython displays it in the formats that are set.
        """
        if "inline" in plt.get_backend():
            plt.close(self)
        raise NotImplementedError


def styled(draw: _Function) -> _Function:
    """Return a function that draws in the style, except for settings that the user has changed."""

    @functools.wraps(draw)
    def call(*args: Any, **kwargs: Any) -> Any:
        now: Any = plt.rcParams
        default: Any = rcParamsDefault
        style: Any = {k: value for k, value in _STYLE.items() if now[k] == default[k]}
        with plt.rc_context(style):
            return draw(*args, **kwargs)

    return call  # type: ignore[return-value]


def picture(count: int, width: float, height: float, columns: int = 4) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its plots.

    Args:
        count: The number of plots.
        width: The width of a plot, in inches.
        height: Its height.
        columns: The largest number of plots in a row.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (columns * width, rows * height)
    figure = plt.figure(figsize=size, layout="constrained", FigureClass=Picture)
    plots = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in plots[count:]:
        unused.remove()
    return figure, plots[:count]


def legend(axes: Axes, handles: Mapping[str, Any], columns: int) -> None:
    """Write above a plot which color has which name.

    Args:
        axes: The plot, with all that it shows.
        handles: An artist for each name.
        columns: The largest number of columns; there are fewer if names are long.
    """
    figure: Any = axes.figure
    names = shortened(handles)
    labels = [tick.get_window_extent().width for tick in axes.get_yticklabels()]
    room = figure.bbox.width - max(labels, default=0) - figure.dpi / 4
    place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    for count in range(min(columns, len(handles)), 0, -1):
        shown = axes.legend(handles.values(), map(str, range(len(handles))), ncols=count, **place)
        # As labels, matplotlib would leave out names that begin with an underscore.
        for text, name in zip(shown.get_texts(), names, strict=True):
            text.set_text(name)
        if shown.get_window_extent().width <= room:
            break
    lines = -(-len(handles) // count)
    figure.set_figheight(figure.get_figheight() + 0.22 * (lines - 1))


def label_ends(axes: Axes, labels: Sequence[tuple[float, str, Any]]) -> None:
    """Write labels at the right of a plot, at least a line apart.

    Args:
        axes: The plot, with all that it shows.
        labels: The heights, texts and colors.
    """
    figure, place_of = axes.figure, axes.get_subplotspec()
    rows = place_of.get_gridspec().nrows if place_of is not None else 1
    line = 0.27 * rows / figure.get_figheight()  # type: ignore[union-attr]  # Of the plot.
    low, high = axes.get_ylim()
    ends = sorted(labels, key=lambda label: label[0])
    places = [(end[0] - low) / (high - low) for end in ends]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + line)
    top = 1.0
    for i in reversed(range(len(places))):  # Back into the plot.
        places[i] = min(places[i], top)
        top = places[i] - line
    for place, (_, text, color) in zip(places, ends, strict=True):
        axes.text(1.02, place, text, color=color, va="center", transform=axes.transAxes)
