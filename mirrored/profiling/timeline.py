"""The picture of one step of a trace."""

import json
from typing import Any, NamedTuple

from mirrored._arguments import explained
from mirrored._files import as_path
from mirrored._numbers import as_integer, counted
from mirrored._types import Figure, PathLike


class Slice(NamedTuple):
    """What took time: its name and kind, and its start and duration in microseconds."""

    name: str
    kind: str
    start: float
    duration: float


@explained
def plot_timeline(filepath: PathLike, step: int = -1) -> "Figure":
    """Return a figure of one step of a trace: what each replica does, and when.

    A step begins where replica 0 gets its rows of a batch. A trace without batches is one step.

    Args:
        filepath: The file that `mr.profiler.trace` wrote.
        step: The number of the step in the trace; negative numbers count from the last one.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The file cannot be read.
        ValueError: The file is not a trace of `mr.profiler.trace`, or has no such step.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with mr.profiler.trace(folder + "/trace.json"):
        ...         y = mr.matmul(mr.ones((64, 64)), mr.ones((64, 64)))
        ...     figure = mr.profiler.plot_timeline(folder + "/trace.json")
        >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
        ['CPU:0']
    """
    path = as_path(filepath, "trace")
    rows = _rows(path)
    infeeds = [piece.start for piece in next(iter(rows.values())) if piece.name == "Infeed"]
    starts = infeeds or [0.0]
    number = as_integer(step)
    if number is None or not -len(starts) <= number < len(starts):
        raise ValueError(
            f"The trace {path!r} has {counted(len(starts), 'step')}. Received: step={step!r}. Pass "
            f"a number from {-len(starts)} to {len(starts) - 1}."
        )
    begin = starts[number]
    end = next((start for start in starts if start > begin), float("inf"))
    shown = {
        row: [piece for piece in pieces if begin <= piece.start < end]
        for row, pieces in rows.items()
    }
    from mirrored.profiling.figures import draw_timeline

    return draw_timeline({row: pieces for row, pieces in shown.items() if pieces}, begin)


def _rows(path: str) -> dict[str, list[Slice]]:
    """Return the slices of each row of a trace, in the order of the file."""
    try:
        with open(path, encoding="utf-8") as file:
            events: list[Any] = json.load(file)["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        rows: dict[str, list[Slice]] = {name: [] for name in names.values()}
        for e in events:
            if e["ph"] == "X":
                rows[names[e["tid"]]].append(
                    Slice(e["name"], e["cat"], float(e["ts"]), float(e["dur"]))
                )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path!r} is not a trace. Pass a file that `mr.profiler.trace` wrote."
        ) from error
    rows = {row: pieces for row, pieces in rows.items() if pieces}
    if not rows:
        raise ValueError(f"The trace {path!r} is empty. Run some work within `mr.profiler.trace`.")
    return rows
