"""Draws a step of a trace."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mirrored._drawing import BLUE, GREEN, GREY, ORANGE, PINK, Figure, picture, styled

if TYPE_CHECKING:
    from mirrored.profiling.timeline import Slice

_COLORS = {
    "matrix products": BLUE,
    "other kernels": GREEN,
    "all-reduce": ORANGE,
    "copies": PINK,
    "waiting": GREY,
}
_KINDS = {"collective": "all-reduce", "transfer": "copies", "wait": "waiting"}
_LETTER = 0.01  # The part of the picture's width that a letter needs.
_THIN = 0.0005  # What is thinner cannot be seen.


@styled
def draw(rows: Mapping[str, Sequence["Slice"]], begin: float) -> Figure:
    """Return a figure with a row for each replica.

    Args:
        rows: The slices of each row.
        begin: When the step begins, in microseconds.
    """
    figure, (axes,) = picture(1, 9.0, 1.1 + 0.5 * len(rows))
    end = max(piece.start + piece.duration for pieces in rows.values() for piece in pieces)
    scale, unit = (1000, "ms") if end - begin >= 1000 else (1, "µs")
    whole = (end - begin) / scale
    thin = _THIN * whole
    for y, pieces in enumerate(rows.values()):
        by_kind: dict[str, list[Any]] = {}
        for piece in pieces:
            start, width = (piece.start - begin) / scale, piece.duration / scale
            spans = by_kind.setdefault(_kind_of(piece), [])
            if spans and start - sum(spans[-1]) < thin:  # Fewer shapes, which look the same.
                spans[-1][1] = start + width - spans[-1][0]
            else:
                spans.append([start, width])
            if width > _LETTER * len(piece.name) * whole:
                middle = start + width / 2
                axes.text(middle, y, piece.name, ha="center", va="center", color="white", size=8)
        for kind, spans in by_kind.items():
            look: Any = {"facecolor": _COLORS[kind], "linewidth": 0, "label": kind}
            if kind == "waiting":
                look["hatch"] = "////"
            axes.broken_barh(spans, (y - 0.35, 0.7), **look)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set(xlabel=f"{unit} from the beginning of the step", xlim=(0, whole))
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    shown = [kind for kind in _COLORS if kind in handles]
    place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(shown)}
    axes.legend([handles[kind] for kind in shown], shown, **place)
    return figure


def _kind_of(piece: "Slice") -> str:
    kernel = "matrix products" if "MatMul" in piece.name else "other kernels"
    return _KINDS.get(piece.kind, kernel)
