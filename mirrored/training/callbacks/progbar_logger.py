"""Shows how far training, evaluation or prediction has come: when, and what a line says."""

import time
from collections.abc import Mapping
from typing import Any

from mirrored.training.callbacks.callback import Callback, Logs, check_verbose
from mirrored.training.progress import Bar, can_draw, format_logs, write_line


class ProgbarLogger(Callback):
    """Draws a bar during each epoch, and prints a line after it; `fit` adds one by itself.

    The values shown are those in `logs`: the means over the global batches.

    Example:
        >>> import mirrored as mr
        >>> logger = mr.callbacks.ProgbarLogger()
        >>> logger.set_params({"verbose": 0, "epochs": 2, "steps": 3})
        >>> logger.on_epoch_begin(0)
        >>> logger.on_epoch_end(0, {"loss": 0.5})
    """

    def __init__(self) -> None:
        super().__init__()
        self._verbose = 1
        self._bar: Bar | None = None
        self._started = 0.0
        self._done = 0
        self._speed = ""  # Of the epoch that is about to end.
        self._steps: int | None = None  # Of the epoch before, where nobody knew it before.
        self._training = False  # Validation inside `fit` is part of its epoch's bar and line.

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take `verbose`, `epochs` and `steps`.

        Raises:
            ValueError: `verbose` is none of "auto", 0, 1 and 2.
        """
        super().set_params(params)
        self._verbose = check_verbose(params.get("verbose", self._verbose))

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run before the bar advances: a hundredth of all of them."""
        return max(steps // 100, 1) if self._draws() else max(steps, 1)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Note that evaluations are validation from here on."""
        self._training = True
        self._steps = None

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Finish."""
        self._let_go()

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
        self._end(self._epoch_title(epoch), logs, self._speed)
        self._speed = ""

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

    def _note_speed(self, examples: int, seconds: float) -> None:
        """Note how fast the steps of an epoch were; the line at its end says so."""
        rate = examples / max(seconds, 1e-9)
        replicas = self.model.distribute_strategy.num_replicas_in_sync
        per_replica = f" ({rate / replicas:,.0f} a replica)" if replicas > 1 else ""
        self._speed = f"{rate:,.0f} examples/s{per_replica}"

    def _let_go(self) -> None:
        """Leave the bar as it stands and go to the next line."""
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

    def _end(self, title: str, logs: Logs | None, speed: str = "") -> None:
        # A bar cuts off what does not fit in the terminal's width: the line shows everything.
        self._clear_bar()
        if self._verbose != 0:
            seconds = time.perf_counter() - self._started
            parts = [title, f"{seconds:.1f}s", speed, format_logs(logs) if logs else ""]
            write_line(" - ".join(part for part in parts if part))
