"""Keras' progress bar for custom loops, drawn as that of `fit` is."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored.training.progress import Bar, can_draw, format_logs, write_line


@explained
class Progbar:
    """Shows how many steps of a custom loop are done, and means of its values.

    A terminal and a notebook show a bar; at its end, and elsewhere, there is a line.

    Args:
        target: The number of steps; None: nobody knows.
        width: Accepted for compatibility: the bar takes the width that there is.
        verbose: 1 for a bar and a line, 2 for the line alone, 0 for neither.
        interval: The seconds between two drawings.
        stateful_metrics: The names of values that are shown as they are, and not as means.
        stateless_metrics: The names of those that are shown as means, where others are not.
        unit_name: What a step is called.

    Raises:
        ValueError: Both kinds of names are given.

    Example:
        >>> bar = Progbar(2, verbose=2)
        >>> bar.update(1, [("loss", 4.0)])
        >>> bar.update(2)  # doctest: +ELLIPSIS
        2/2 steps - ...s - loss: 4.0000
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError(
                "Only one of `stateful_metrics` or `stateless_metrics` can be provided. Values "
                "with other names are of the other kind."
            )
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.unit_name = unit_name
        self.stateful_metrics = set(stateful_metrics or ()) if stateless_metrics is None else None
        self.stateless_metrics = None if stateless_metrics is None else set(stateless_metrics)
        self._sums: dict[str, tuple[Any, int]] = {}  # Each with what it is divided by.
        self._done = 0
        self._start = time.perf_counter()
        self._drawn = 0.0
        self._bar: Bar | None = None

    def update(
        self,
        current: int,
        values: Iterable[tuple[str, Any]] | None = None,
        finalize: bool | None = None,
    ) -> None:
        """Note that steps are done.

        Args:
            current: The number of steps that are done in all.
            values: Names, each with its value in the steps since the last call; at the end, with
                what is shown.
            finalize: Whether this is the end; None: once `target` is reached.
        """
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        for name, value in values or ():
            total, count = self._sums.get(name, (0, 0))
            if finalize or not self._is_mean(name):
                total, count = value, 1
            else:
                new = max(current - self._done, 1)
                total, count = total + value * new, count + new
            self._sums[name] = total, count
        self._done = current
        now = time.perf_counter()
        text = format_logs({name: np.mean(total) / n for name, (total, n) in self._sums.items()})
        if finalize:
            self._end(now - self._start, text)
        elif self.verbose == 1 and can_draw() and now - self._drawn >= self.interval:
            if self._bar is None:
                self._bar = Bar("", self.target, self.unit_name)
            self._bar.advance(current, text)
            self._drawn = now

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Note that further steps are done.

        Args:
            n: Their number.
            values: As for `update`.
        """
        self.update(self._done + n, values)

    def _is_mean(self, name: str) -> bool:
        if self.stateless_metrics is not None:
            return name in self.stateless_metrics
        return name not in (self.stateful_metrics or ())

    def _end(self, seconds: float, values: str) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()
        if self.verbose:
            of = "" if self.target is None else f"/{self.target}"
            count = f"{self._done}{of} {self.unit_name}s"
            write_line(" - ".join(part for part in (count, f"{seconds:.1f}s", values) if part))
