"""Draws how far something has come, and the values so far.

A terminal or a notebook gets a bar that is redrawn in place, above which lines that are logged or
printed meanwhile stand; at its end, and in a file or a pipe, is a line.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored._files import writes
from mirrored._logging import beside_bars, room_for_a_line

if TYPE_CHECKING:  # Drawing is imported when something is drawn: importing us stays fast.
    from tqdm import tqdm

_SMALL = 1e-3  # Below it four decimals would show too little.
_WIDTH = 12  # Cells of a bar.
_BLOCK = 3  # Cells of the block that moves where nobody knows how many steps there are.
_CELLS_A_SECOND = 10
_TIMES = "{elapsed}<{remaining}, {rate_fmt}{postfix}"
_TIMES_WITHOUT_END = "{elapsed}, {rate_fmt}{postfix}"


def format_logs(logs: Mapping[str, Any]) -> str:
    """Return the values as a line shows them: four decimals, or scientific for small ones."""
    return " - ".join(f"{name}: {format_value(value)}" for name, value in logs.items())


def format_value(value: Any) -> str:
    """Return one value as lines show it."""
    try:
        number = float(value)
    except (TypeError, ValueError):  # A callback may log whatever it likes.
        if not isinstance(value, np.ndarray):
            return str(value)
        number = float(value.mean())  # As Keras' bar shows a metric of several numbers.
    return f"{number:.4e}" if 0 < abs(number) < _SMALL else f"{number:.4f}"


# ---------------------------------------------------------------------------- bars


def can_draw() -> bool:
    """Return whether standard output shows bars: a terminal does, and a notebook."""
    return sys.stdout is not None and (sys.stdout.isatty() or in_notebook()) and writes()


class Bar:
    """A bar that is on the screen from now on, until it is closed."""

    def __init__(self, title: str, steps: int | None, unit: str = "step") -> None:
        with ExitStack() as stack:
            has_widgets = in_notebook() and find_spec("ipywidgets") is not None
            self._bar = (_notebook_bar if has_widgets else _terminal_bar)(title, steps, unit)
            stack.callback(self._bar.close)
            stack.enter_context(beside_bars())
            self._stack = stack.pop_all()

    def advance(self, steps: int, values: str) -> None:
        """Show the number of steps that are done."""
        if values:
            self._bar.set_postfix_str(values, refresh=False)
        self._bar.update(steps - self._bar.n)

    def close(self, *, leave: bool = False) -> None:
        """Take the bar off the screen."""
        self._bar.leave = leave
        self._stack.close()


def write_line(text: str) -> None:
    """Print a line on standard output, above the bars that are on the screen.

    Of several workers the first one does.
    """
    if sys.stdout is not None and writes():
        with room_for_a_line():
            print(text, flush=True)


def in_notebook() -> bool:
    """Return whether standard output is a notebook's."""
    return type(sys.stdout).__module__ == "ipykernel.iostream"


def _terminal_bar(title: str, steps: int | None, unit: str) -> "tqdm[Any]":
    from tqdm import tqdm

    class TerminalBar(tqdm):  # type: ignore[type-arg]  # tqdm is generic in its stubs only.
        monitor_interval = 0  # No watching thread: every update looks at the clock by itself.

        @property
        def format_dict(self) -> Any:
            known = super().format_dict
            return {**known, "moving": _moving(known["elapsed"], known["n"])}

    form = f"{{n_fmt}}/{{total_fmt}} |{{bar:{_WIDTH}}}| {_TIMES}"
    if steps is None:
        form = f"{{n_fmt}}/? |{{moving}}| {_TIMES_WITHOUT_END}"
    return TerminalBar(bar_format=f"{{desc}}: {form}", **_options(title, steps, unit))


def _notebook_bar(title: str, steps: int | None, unit: str) -> "tqdm[Any]":
    from IPython.display import display
    from tqdm.notebook import tqdm

    class NotebookBar(tqdm):  # type: ignore[type-arg]
        monitor_interval = 0

        def __init__(self, **options: Any) -> None:
            super().__init__(display=False, **options)
            self._shown = display(self.container, display_id=True)
            self.displayed = True

        def close(self) -> None:
            """Take the widgets away: a notebook that is stored would have dead ones."""
            if self.disable:  # It is closed.
                return
            text = {"text/plain": str(self)} if self.leave else {}
            super().close()
            for widget in (*self.container.children, self.container):
                widget.layout.close()
                widget.close()
            self._shown.update(text, raw=True)

        def display(self, *args: Any, **options: Any) -> None:
            super().display(*args, **options)
            if self.total is None:
                self.container.children[1].value = _place(self.format_dict["elapsed"])

    times = _TIMES_WITHOUT_END if steps is None else _TIMES
    form = f"{{desc}}: {{n_fmt}}/{{total_fmt}} {{bar}} {times}"
    return NotebookBar(bar_format=form, **_options(title, steps, unit))


def _options(title: str, steps: int | None, unit: str) -> dict[str, Any]:
    return {
        "total": steps,
        "desc": title,
        "unit": unit,
        "file": sys.stdout,
        "miniters": 1,
        "leave": False,
        **_size(),
    }


def _size() -> dict[str, Any]:
    """Return how large the terminal is, where it says so; tqdm would draw nothing on one of 0 x 0.

    That is what a container's or a recorder's terminal has where nobody sits before it.
    """
    try:
        unknown = 0 in os.get_terminal_size(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # A notebook, or a stand-in for a stream.
        unknown = False
    return {"ncols": 80, "nrows": 24} if unknown else {"dynamic_ncols": True}


def _place(seconds: float) -> float:
    """Return where something is that goes to and fro between 0 and 1."""
    way = _WIDTH - _BLOCK
    place = int(seconds * _CELLS_A_SECOND) % (2 * way)
    return min(place, 2 * way - place) / way


def _moving(seconds: float, steps: int) -> str:
    """Return a bar in which a block goes to and fro, once there is a step."""
    before = round(_place(seconds) * (_WIDTH - _BLOCK))
    block = "#" * _BLOCK if steps else " " * _BLOCK
    return f"{' ' * before}{block}".ljust(_WIDTH)
