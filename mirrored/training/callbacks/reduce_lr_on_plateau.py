"""Takes smaller steps when training no longer helps."""

import numpy as np

from mirrored._arguments import explained
from mirrored.training.callbacks.callback import Logs
from mirrored.training.callbacks.monitor_callback import MonitorCallback
from mirrored.training.progress import write_line

_MISSING = (
    "Learning rate reduction is conditioned on metric `{}` which is not available. "
    "Available metrics are: {}."
)


@explained
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
        """Begin anew."""
        super().on_train_begin(logs)
        self.best = None
        self.cooldown_counter = self.wait = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare the value with the best one, and reduce the learning rate where it is time."""
        self._set_monitor_op()
        logs = {} if logs is None else logs
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        current = self._monitored(logs, _MISSING)
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
