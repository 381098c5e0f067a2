"""HTML of objects in notebooks: titles and tables, in the colors of the notebook."""

from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from typing import Any

_ROWS, _COLUMNS = 6, 8  # Of an array, the most that are shown.


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def titled(title: str, note: str = "", *parts: str) -> str:
    """Return a title, a note beside it, and HTML below them.

    Example:
        >>> titled("Tensor", "shape (2,) & more")
        '<div><b>Tensor</b> shape (2,) &amp; more</div>'
    """
    return f"<div><b>{escape(title)}</b> {escape(note)}{''.join(parts)}</div>"


def table(
    rows: Iterable[Sequence[object]], head: Sequence[object] = (), right: Collection[int] = ()
) -> str:
    """Return a table; cells are text, but for `Markup`.

    Args:
        rows: The cells by row.
        head: The names of the columns.
        right: The numbers of the columns that are aligned at the right.

    Example:
        >>> table([["<a>", Markup("<b>2</b>")]]).count("<td")
        2
    """

    def line(row: Sequence[object], kind: str) -> str:
        parts = []
        for place, cell in enumerate(row):
            text = cell if isinstance(cell, Markup) else escape(str(cell))
            side = "right" if place in right else "left"
            style = f"text-align: {side}; vertical-align: top; padding: 0.1em 0.7em"
            style += "; white-space: pre"
            parts.append(f'<{kind} style="{style}">{text}</{kind}>')
        return "".join(parts)

    above = f"<thead><tr>{line(head, 'th')}</tr></thead>" if head else ""
    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f'<div style="overflow-x: auto"><table>{above}<tbody>{body}</tbody></table></div>'


def bar(part: float, whole: float) -> Markup:
    """Return a bar that is filled in part, with a red line at its end.

    Example:
        >>> "width: 25%" in bar(1, 4)
        True
    """
    width = 100 * part / whole if whole else 0
    return Markup(
        '<div style="width: min(10em, 20vw); margin-top: 0.3em; background: #8884; '
        'border-right: 3px solid #d1403a">'
        f'<div style="width: {min(width, 100):.0f}%; height: 0.8em; background: #2a7fc1"></div>'
        "</div>"
    )


def values(array: Any, to_host: Callable[[Any], Any]) -> str:
    """Return a table of the first values of an array, of which no others leave their device.

    Args:
        array: The array, of any rank.
        to_host: Copies an array to the host.
    """
    if 0 in array.shape:
        return ""
    rank = len(array.shape)
    index = (0,) * (rank - 2) + (slice(_ROWS), slice(_COLUMNS))[2 - min(rank, 2) :]
    corner = to_host(array[index] if index else array)
    lines = corner.reshape(-1, corner.shape[-1] if rank else 1)
    rows = [[_text(value) for value in line] for line in lines]
    if rank and array.shape[-1] > _COLUMNS:
        rows = [[*row, "…"] for row in rows]
    if rank > 1 and array.shape[-2] > _ROWS:
        rows.append(["…"] * len(rows[0]))
    where = f"<div>[{', '.join(['0'] * (rank - 2))}]</div>" if rank > 2 else ""
    return where + table(rows, right=range(_COLUMNS))


def _text(value: Any) -> str:
    return f"{float(value):.5g}" if value.dtype.kind in "fV" else str(value)
