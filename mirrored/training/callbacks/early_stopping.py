"""Ends training when it no longer helps."""

from typing import Any

from mirrored._arguments import explained
from mirrored.training.callbacks.callback import Logs
from mirrored.training.callbacks.monitor_callback import MonitorCallback
from mirrored.training.progress import write_line

_MISSING = (
    "Early stopping conditioned on metric `{}` which is not available. Available metrics are: {}"
)


@explained
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
        """Begin anew."""
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
        return self._monitored(logs or {}, _MISSING)

    def _take_weights(self, epoch: int) -> None:
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.best_weights = self.model.get_weights()
