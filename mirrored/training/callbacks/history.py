"""What `fit` returns: the logs of every epoch."""

from mirrored.training.callbacks.callback import Callback, Logs


class History(Callback):
    """Collects the logs of every epoch; `fit` returns one and keeps it at `model.history`.

    Attributes:
        history: The values of every epoch by name: `loss`, the metrics, and `val_` of each.
        epoch: The epochs run, counted from 0.

    Example:
        >>> from mirrored.training.callbacks import History
        >>> history = History()
        >>> history.on_epoch_end(0, {"loss": 0.5})
        >>> history.on_epoch_end(1, {"loss": 0.25})
        >>> history.history, history.epoch
        ({'loss': [0.5, 0.25]}, [0, 1])
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Count the epochs anew; the values go on behind those that are there."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Append the epoch's logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
