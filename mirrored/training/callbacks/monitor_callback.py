"""What callbacks share that look at one value after each epoch: when it is better than another.

Values are compared as Keras does, in float32, so that more digits make no difference.
"""

import warnings
from typing import Any

import numpy as np

from mirrored.training.callbacks.callback import Callback, Logs

_LOWER, _HIGHER = np.less, np.greater


class MonitorCallback(Callback):
    """Base of the callbacks that monitor a value in the logs.

    Args:
        monitor: The value's name.
        mode: "min" where less is better, "max" where more is; "auto": as the loss or the metric of
            this name says.
        baseline: What the first value has to be better than; None: nothing.
        min_delta: By how much a value has to be better at least.

    Attributes:
        best: The best value so far, or None.
        monitor_op: NumPy's function that compares a value with the best; None before training.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        mode: str = "auto",
        baseline: float | None = None,
        min_delta: float = 0,
    ) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            warnings.warn(
                f"{type(self).__name__} mode '{mode}' is unknown, fallback to auto mode.",
                stacklevel=3,
            )
            mode = "auto"
        self.monitor = monitor
        self.mode = mode
        self.best = baseline
        self.min_delta = abs(min_delta)
        self.monitor_op: Any = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Find out which values are better.

        Raises:
            ValueError: The mode is "auto", and nothing says it of this name.
        """
        self._set_monitor_op()

    def _set_monitor_op(self) -> None:
        """Find out which values are better, if that is not known."""
        if self.monitor_op is not None:
            return
        if self.mode == "auto":
            self.monitor_op = self._direction()
        else:
            self.monitor_op = _LOWER if self.mode == "min" else _HIGHER
        if self.monitor_op is _LOWER:
            self.min_delta *= -1

    def _direction(self) -> Any:
        """Return the comparison for a value of this name."""
        name = self.monitor.removeprefix("val_")
        directions: dict[str, str] = {}
        for metric in getattr(self.model, "metrics", ()):
            # Those of `compile` are one metric, which knows what logs call each of them.
            for known, named_metric in getattr(metric, "named", {metric.name: metric}).items():
                if getattr(named_metric, "_direction", None) is not None:
                    directions[known] = named_metric._direction
        if name in directions:
            return _HIGHER if directions[name] == "up" else _LOWER
        if name == "loss":
            return _LOWER
        raise ValueError(
            f"{type(self).__name__} callback received monitor={self.monitor}, but mirrored isn't "
            "able to automatically determine whether that metric should be maximized or "
            "minimized. Pass `mode='max'` in order to monitor based on the highest metric value, "
            "or pass `mode='min'` in order to use the lowest value."
        )

    def _is_improvement(self, value: Any, reference: Any) -> bool:
        """Return whether a value is better than another one, or there is no other."""
        if reference is None:
            return True
        with np.errstate(over="ignore"):  # What is too large is infinite.
            value, reference = np.float32(value - self.min_delta), np.float32(reference)
        return bool(self.monitor_op(value, reference))

    def _monitored(self, logs: Logs, missing: str) -> Any:
        """Return the value; None, with a warning, where the logs have none.

        Args:
            logs: The logs.
            missing: What the warning says, with a place for the name and one for those there are.
        """
        value = logs.get(self.monitor)
        if value is None:
            warnings.warn(missing.format(self.monitor, ",".join(logs)), stacklevel=3)
        return value
