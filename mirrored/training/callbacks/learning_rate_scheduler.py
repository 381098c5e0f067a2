"""Sets the learning rate of each epoch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.progress import write_line


class LearningRateScheduler(Callback):
    """Sets the learning rate at the start of each epoch; its logs get the rate that it had.

    Args:
        schedule: A function of the epoch, counted from 0, and of the learning rate so far, or of
            the epoch alone, that returns the new one, a float.
        verbose: 1 prints what is done, 0 nothing.

    Raises:
        ValueError: At the start of an epoch: what `schedule` returns is no float, or no learning
            rate.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile(mr.optim.SGD(0.25), "mse")
        >>> halve = mr.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
        >>> history = model.fit([[1.0]], [[2.0]], epochs=3, callbacks=[halve], verbose=0)
        >>> history.history["learning_rate"]
        [0.125, 0.0625, 0.03125]
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule = schedule
        self.verbose = verbose

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Set the learning rate."""
        optimizer = self.model.optimizer
        if not hasattr(optimizer, "learning_rate"):
            raise ValueError(
                'Optimizer must have a "learning_rate" attribute. Received: '
                f"{type(optimizer).__name__}. Set the learning rate of each optimizer in its "
                "`optimizers`."
            )
        rate: Any
        try:
            rate = self.schedule(epoch, float(optimizer.learning_rate))
        except TypeError:  # As Keras: it may be a function of the epoch alone.
            rate = self.schedule(epoch)
        if not isinstance(rate, float | np.float32):
            raise ValueError(
                f"The output of the `schedule` function should be a float. Got: {rate}"
            )
        optimizer.learning_rate = rate
        if self.verbose > 0:
            write_line(
                f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}."
            )

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Add the learning rate to the logs."""
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)
