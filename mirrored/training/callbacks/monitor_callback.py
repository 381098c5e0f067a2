"""Callbacks that look at one value after each epoch: they stop training, or lower its rate.

Values are compared as Keras does, in float32, so that more digits make no difference.
"""

from typing import Any

import numpy as np

from mirrored._logging import warn_caller
from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.progress import write_line

_LOWER, _HIGHER = np.less, np.greater

_NOTHING_TO_STOP_BY = (
    "Early stopping conditioned on metric `{}` which is not available. Available metrics are: {}"
)
_NOTHING_TO_REDUCE_BY = (
    "Learning rate reduction is conditioned on metric `{}` which is not available. "
    "Available metrics are: {}."
)


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
            warn_caller(f"{type(self).__name__} mode '{mode}' is unknown, fallback to auto mode.")
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
        directions = {"loss": "down"}
        for metric in getattr(self.model, "metrics", ()):
            # Those of `compile` are one metric, which knows what logs call each of them.
            for known, named_metric in getattr(metric, "named", {metric.name: metric}).items():
                if getattr(named_metric, "_direction", None) is not None:
                    directions[known] = named_metric._direction
        if name in directions:
            return _HIGHER if directions[name] == "up" else _LOWER
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
            warn_caller(missing.format(self.monitor, ",".join(logs)))
        return value


class EarlyStopping(MonitorCallback):
    """Ends training when a value has not become better for some epochs.

    An interrupt or an error that ends `fit` leaves the weights of the last step; `best_weights`
    has the best ones then too.

    Args:
        monitor: The name of the value: "loss", a metric, or "val_" and one of these.
        min_delta: By how much a value has to be better at least.
        patience: How many epochs without a better value end training; 0 is as 1.
        verbose: 1 prints what is done, 0 nothing.
        mode: "min" where less is better, "max" where more is; "auto": as the loss or the metric of
            this name says.
        baseline: What a value has to be better than too; None: nothing.
        restore_best_weights: Whether the model has the weights of the best epoch at the end of
            `fit`, stopped or not.
        start_from_epoch: The first epoch that counts, from 0.

    Attributes:
        best: The best value so far, or None.
        best_epoch: Its epoch, counted from 0.
        best_weights: Its weights, where they are to be restored; else None.
        stopped_epoch: The epoch that ended training, counted from 0; 0 where none did.
        wait: For how many epochs there was no better value.

    Raises:
        ValueError: At the start of training: the mode is "auto", and nothing says which values of
            this name are better.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile(mr.optim.SGD(0.0), "mse")
        >>> stop = mr.callbacks.EarlyStopping(monitor="loss", patience=3)
        >>> history = model.fit([[1.0]], [[2.0]], epochs=10, callbacks=[stop], verbose=0)
        >>> len(history.epoch)
        4
    """

    _kept = ("best", "best_epoch", "best_weights", "stopped_epoch", "wait")

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.wait = 0
        self.stopped_epoch = 0
        self.restore_best_weights = restore_best_weights
        self.best_epoch = 0
        self.best_weights: Any = None
        self.start_from_epoch = start_from_epoch

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Reset the state."""
        super().on_train_begin(logs)
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = self.best_weights = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare the value with the best one, and end training where it is time."""
        self._set_monitor_op()
        current = self.get_monitor_value(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self._take_weights(epoch)
        self.wait += 1
        if self._is_improvement(current, self.best):
            self._take_weights(epoch)
            self.best = current
            # Where it is not better than the baseline too, the wait goes on.
            if self.baseline is None or self._is_improvement(current, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Restore the best weights, where that was asked for."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            write_line(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose > 0:
                best = self.best_epoch + 1
                write_line(f"Restoring model weights from the end of the best epoch: {best}.")
            self.model.set_weights(self.best_weights)

    def get_monitor_value(self, logs: Logs | None) -> Any:
        """Return the value in the logs; None, with a warning, where it is not there."""
        return self._monitored(logs or {}, _NOTHING_TO_STOP_BY)

    def _take_weights(self, epoch: int) -> None:
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.best_weights = self.model.get_weights()


class ReduceLROnPlateau(MonitorCallback):
    """Reduces the learning rate when a value has not become better for some epochs.

    The logs of each epoch get the learning rate that it had.

    Args:
        monitor: The name of the value: "loss", a metric, or "val_" and one of these.
        factor: What the learning rate is multiplied by, less than 1.
        patience: How many epochs without a better value reduce it; 0 is as 1.
        verbose: 1 prints what is done, 0 nothing.
        mode: "min" where less is better, "max" where more is; "auto": as the loss or the metric of
            this name says.
        min_delta: By how much a value has to be better at least.
        cooldown: How many epochs after a reduction do not count.
        min_lr: The least learning rate that it is reduced to.

    Raises:
        ValueError: `factor` is 1 or more; or, at the start of training, the mode is "auto", and
            nothing says which values of this name are better.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile(mr.optim.SGD(0.0625), "mse")
        >>> reduce = mr.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=100)
        >>> history = model.fit([[1.0]], [[2.0]], epochs=3, callbacks=[reduce], verbose=0)
        >>> history.history["learning_rate"]
        [0.0625, 0.0625, 0.03125]
    """

    _kept = ("best", "cooldown_counter", "wait")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        if factor >= 1.0:
            raise ValueError(
                f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}"
            )
        self.factor = factor
        self.min_lr = min_lr
        self.patience = patience
        self.verbose = verbose
        self.cooldown = cooldown
        self.cooldown_counter = 0
        self.wait = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Reset the state."""
        super().on_train_begin(logs)
        self.best = None
        self.cooldown_counter = self.wait = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare the value with the best one, and reduce the learning rate where it is time."""
        self._set_monitor_op()
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        current = self._monitored(logs, _NOTHING_TO_REDUCE_BY)
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._is_improvement(current, self.best):
            self.best = current
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and self._reduce(epoch):
                self.cooldown_counter = self.cooldown
                self.wait = 0

    def in_cooldown(self) -> bool:
        """Return whether epochs do not count yet after a reduction."""
        return self.cooldown_counter > 0

    def _reduce(self, epoch: int) -> bool:
        """Reduce the learning rate; return whether it was not the least one before."""
        optimizer = self.model.optimizer
        rate = float(optimizer.learning_rate)
        if rate <= np.float32(self.min_lr):
            return False
        reduced = max(rate * self.factor, self.min_lr)
        optimizer.learning_rate = reduced
        if self.verbose > 0:
            write_line(
                f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {reduced}."
            )
        return True
