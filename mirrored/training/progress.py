"""Shows how far training, evaluation or prediction has come, and the loss and metrics so far.

A terminal or a notebook gets a bar that is redrawn in place, above which lines that are logged or
printed meanwhile stand; at its end, and in a file or a pipe, is a line.
"""

import os
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mirrored._logging import beside_bars, room_for_a_line
from mirrored.training.callbacks import Callback, Logs

if TYPE_CHECKING:  # Drawing is imported when something is drawn: importing us stays fast.
    from tqdm import tqdm

_SMALL = 1e-3  # Below it four decimals would show too little.
_WIDTH = 12  # Cells of a bar.
_BLOCK = 3  # Cells of the block that moves where nobody knows how many steps there are.
_CELLS_A_SECOND = 10
_TIMES = "{elapsed}<{remaining}, {rate_fmt}{postfix}"
_TIMES_WITHOUT_END = "{elapsed}, {rate_fmt}{postfix}"


class ProgressBar(Callback):
    """Draws a bar during each epoch, and prints a line after it.

    The values shown are those in `logs`: the means over the global batches.

    Raises:
        ValueError: `verbose` is something else.
    """

    def __init__(self, verbose: int | str = "auto") -> None:
        super().__init__()
        if verbose not in ("auto", 0, 1, 2):
            raise ValueError(f'`verbose` must be "auto", 0, 1 or 2. Received: verbose={verbose!r}.')
        self._verbose = 1 if verbose == "auto" else int(verbose)
        self._bar: Bar | None = None
        self._started = 0.0
        self._done = 0
        self._steps: int | None = None  # Of the epoch before, where nobody knew it before.
        self._training = False  # Validation inside `fit` is part of its epoch's bar and line.

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run before the bar advances: a hundredth of all of them."""
        return max(steps // 100, 1) if self._draws() else max(steps, 1)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Note that evaluations are validation from here on."""
        self._training = True
        self._steps = None

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Finish."""
        self.close()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Start the epoch's bar."""
        self._begin(self._epoch_title(epoch))

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Advance the bar."""
        self._advance(batch, logs)
        self._done = batch + 1

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Put the line with the values of the epoch and its validation in the bar's place."""
        self._steps = self._done
        self._end(self._epoch_title(epoch), logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Start the bar of an evaluation."""
        if not self._training:
            self._begin("Evaluate")

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Advance the bar of an evaluation."""
        if not self._training:
            self._advance(batch, logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Put the line of an evaluation in its bar's place."""
        if not self._training:
            self._end("Evaluate", logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Start the bar of a prediction."""
        self._begin("Predict")

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Advance the bar of a prediction."""
        self._advance(batch, None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Clear the bar of a prediction; there is nothing to print."""
        self._clear_bar()

    def close(self) -> None:
        """Leave the bar as it stands and go to the next line: after an exception or an interrupt.

        Closing twice, or where nothing is drawn, does nothing.
        """
        self._training = False
        self._clear_bar(leave=True)

    def _clear_bar(self, *, leave: bool = False) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close(leave=leave)

    def _draws(self) -> bool:
        return self._verbose == 1 and can_draw()

    def _epoch_title(self, epoch: int) -> str:
        return f"Epoch {epoch + 1}/{self.params.get('epochs', '?')}"

    def _begin(self, title: str) -> None:
        self._clear_bar()  # What an interrupted run may have left.
        self._started = time.perf_counter()
        if self._draws():
            self._bar = Bar(title, self.params.get("steps") or self._steps)

    def _advance(self, batch: int, logs: Logs | None) -> None:
        if self._bar is not None:
            self._bar.advance(batch + 1, format_logs(logs) if logs else "")

    def _end(self, title: str, logs: Logs | None) -> None:
        # A bar cuts off what does not fit in the terminal's width: the line shows everything.
        self._clear_bar()
        if self._verbose != 0:
            seconds = time.perf_counter() - self._started
            parts = [title, f"{seconds:.1f}s", *([format_logs(logs)] if logs else [])]
            write_line(" - ".join(parts))


def format_logs(logs: Logs) -> str:
    """Return the values as a line shows them: four decimals, or scientific for small ones."""
    return " - ".join(f"{name}: {_format_value(value)}" for name, value in logs.items())


def _format_value(value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):  # A callback may log whatever it likes.
        return str(value)
    return f"{number:.4e}" if 0 < abs(number) < _SMALL else f"{number:.4f}"


# ---------------------------------------------------------------------------- bars


def can_draw() -> bool:
    """Return whether standard output shows bars: a terminal does, and a notebook."""
    return sys.stdout is not None and (sys.stdout.isatty() or _in_notebook())


class Bar:
    """A bar that is on the screen from now on, until it is closed."""

    def __init__(self, title: str, steps: int | None) -> None:
        with ExitStack() as stack:
            self._bar = (_notebook_bar if _has_widgets() else _terminal_bar)(title, steps)
            stack.callback(self._bar.close)
            stack.enter_context(beside_bars())
            self._stack = stack.pop_all()

    def advance(self, steps: int, values: str) -> None:
        """Show that so many steps are done."""
        if values:
            self._bar.set_postfix_str(values, refresh=False)
        self._bar.update(steps - self._bar.n)

    def close(self, *, leave: bool = False) -> None:
        """Take the bar off the screen."""
        self._bar.leave = leave
        self._stack.close()


def write_line(text: str) -> None:
    """Print a line on standard output, above the bars that are on the screen."""
    if sys.stdout is not None:
        with room_for_a_line():
            print(text, flush=True)


def _in_notebook() -> bool:
    return type(sys.stdout).__module__ == "ipykernel.iostream"


def _has_widgets() -> bool:
    return _in_notebook() and find_spec("ipywidgets") is not None


def _terminal_bar(title: str, steps: int | None) -> "tqdm[Any]":
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
    return TerminalBar(bar_format=f"{{desc}}: {form}", **_options(title, steps))


def _notebook_bar(title: str, steps: int | None) -> "tqdm[Any]":
    from tqdm.notebook import tqdm

    class NotebookBar(tqdm):  # type: ignore[type-arg]
        monitor_interval = 0

        def display(self, *args: Any, **options: Any) -> None:
            super().display(*args, **options)
            if self.total is None:
                self.container.children[1].value = _place(self.format_dict["elapsed"])

    times = _TIMES_WITHOUT_END if steps is None else _TIMES
    form = f"{{desc}}: {{n_fmt}}/{{total_fmt}} {{bar}} {times}"
    return NotebookBar(bar_format=form, **_options(title, steps))


def _options(title: str, steps: int | None) -> dict[str, Any]:
    return {
        "total": steps,
        "desc": title,
        "unit": "step",
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
