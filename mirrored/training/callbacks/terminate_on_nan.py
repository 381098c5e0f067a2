"""Ends training where the loss is no number any more."""

import math
from typing import ClassVar

from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.progress import write_line


class TerminateOnNaN(Callback):
    """Ends `fit` without an error where a loss is NaN or infinite, as after `stop_training`.

    The step whose loss that is writes nothing: the weights are those of the step before. The epoch
    ends with it, and its logs have the loss. Without this callback `fit` raises
    `NonFiniteLossError`.

    Args:
        raise_error: Whether to raise RuntimeError instead.

    Raises:
        RuntimeError: In `fit`: a loss is not finite, and `raise_error` is True.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> stop = mr.callbacks.TerminateOnNaN()
        >>> history = model.fit([[float("nan")]], [[1.0]], epochs=5, callbacks=[stop], verbose=0)
        Batch 0: Invalid loss, terminating training
        >>> history.epoch
        [0]
    """

    ends_on_non_finite: ClassVar[bool] = True

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks: all, for a step itself says it."""
        return 1 if self._has_hooks(kind, TerminateOnNaN) else max(steps, 1)

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """End training where the loss is not finite."""
        loss = (logs or {}).get("loss")
        if loss is None or math.isfinite(loss):
            return
        if self.raise_error:
            raise RuntimeError(
                f"NaN or Inf loss encountered at batch {batch}. Loss value: {loss}. Terminating "
                "training immediately."
            )
        write_line(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True
