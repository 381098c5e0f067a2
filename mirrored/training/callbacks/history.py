"""What `fit` returns: the logs of every epoch."""

from contextlib import suppress

from mirrored._numbers import counted
from mirrored._types import Figure
from mirrored.training.callbacks.callback import Callback, Logs

_SHOWN = 8  # Epochs that a notebook shows.


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

    _kept = ("history", "epoch", "_places", "_last")

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []
        # Where plots have the values: by name, for some are not there in every epoch.
        self._places: dict[str, list[int]] = {}
        self._last = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Count the epochs from 0 again; new values are appended."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Append the epoch's logs."""
        self.epoch.append(epoch)
        self._last = max(self._last, epoch) + 1  # Another `fit` with this history goes on.
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
            self._places.setdefault(name, []).append(self._last)
        # A `fit` of the same model within this one has put its own.
        if self.model is not None and getattr(self.model, "history", None) is not self:
            self.model.history = self

    def plot(self) -> "Figure":
        """Return a figure of pyplot's with a curve for each value over the epochs, from 1.

        A value and its `val_` are in one plot. A notebook displays the figure, `plt.show()` opens
        its window elsewhere, and the figure's `savefig` writes it to a file.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: There is no epoch, or no value that is a number.

        Example:
            >>> import mirrored as mr
            >>> history = mr.callbacks.History()
            >>> history.on_epoch_end(0, {"loss": 0.5, "val_loss": 0.75})
            >>> history.on_epoch_end(1, {"loss": 0.25, "val_loss": 0.5})
            >>> [axes.get_ylabel() for axes in history.plot().axes]
            ['loss']
        """
        curves = self._curves()
        if not curves:
            raise ValueError(
                "There is nothing to plot: the history has no values yet. Call `fit` first."
            )
        from mirrored.training.callbacks.history_figure import draw  # Most programs draw nothing.

        return draw(curves)

    def _repr_html_(self) -> str:
        from mirrored import _html
        from mirrored.training.progress import format_value

        values = {name: dict(zip(*curve, strict=True)) for name, curve in self._curves().items()}
        epochs = sorted({epoch for numbers in values.values() for epoch in numbers})
        rows = [
            (epoch, *(format_value(of[epoch]) if epoch in of else "" for of in values.values()))
            for epoch in epochs[-_SHOWN:]
        ]
        shown = _html.table(rows, ("epoch", *values), right=range(len(values) + 1))
        return _html.titled("History", f"{counted(len(epochs), 'epoch')}; plot() draws them", shown)

    def _curves(self) -> dict[str, tuple[list[int], list[float]]]:
        """Return the values that are numbers, with their epochs, by name."""
        curves = {}
        for name, values in self.history.items():
            with suppress(TypeError, ValueError):  # A callback may log whatever it likes.
                numbers = [float(value) for value in values]
                places = self._places.get(name, [])
                if len(places) != len(numbers):  # Somebody put them there.
                    places = list(range(1, len(numbers) + 1))
                if numbers:
                    curves[name] = places, numbers
        return curves
