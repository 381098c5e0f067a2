"""Hooks that users hang into training, evaluation and prediction, with Keras' names.

All callbacks of one event are given the same logs, so that one can add to what a later one sees.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mirrored._arguments import explained

Logs = dict[str, Any]


class Callback:
    """What happens at points of `fit`, `evaluate` and `predict`; override the methods you need.

    `logs` holds the means of the loss and the metrics over the epoch so far, and at its end those
    of its validation too. Set `self.model.stop_training = True` to end training after the batch
    that is running; its epoch is still validated and ended.

    Attributes:
        model: The model that is trained, once training began.
        params: `verbose`, `epochs` and `steps`, as far as they are known.

    Example:
        >>> import mirrored as mr
        >>> class StopWhenGood(mr.callbacks.Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         if logs["loss"] < 0.1:
        ...             self.model.stop_training = True
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None}  # It travels without the model that it looks at.

    def set_model(self, model: Any) -> None:
        """Take the model that is about to be trained."""
        self.model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take `verbose`, `epochs` and `steps`."""
        self.params = dict(params)

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two calls of the batch hooks; 1 where it has any.

        Args:
            kind: "train", "test" or "predict".
            steps: How many steps there are in all.
        """
        hooks = [f"on_{kind}_batch_begin", f"on_{kind}_batch_end"]
        if kind == "train":
            hooks += ["on_batch_begin", "on_batch_end"]
        own = any(getattr(type(self), hook) is not getattr(Callback, hook) for hook in hooks)
        own = own or any(hook in vars(self) for hook in hooks)
        return 1 if own else max(steps, 1)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Run before the first epoch."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Run after the last epoch, with its logs."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Run before epoch `epoch`, counted from 0."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Run after epoch `epoch` and its validation, whose logs begin with `val_`."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Run before batch `batch` of an epoch, counted from 0."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Run after batch `batch` of an epoch, with the means over the epoch so far."""
        self.on_batch_end(batch, logs=logs)

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Run before a training batch: another name for `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Run after a training batch: another name for `on_train_batch_end`."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Run before evaluation, that of `fit`'s validation data included."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Run after evaluation, with its loss and metrics."""

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Run before batch `batch` of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Run after batch `batch` of an evaluation, with the means so far."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Run before prediction."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Run after prediction."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Run before batch `batch` of a prediction."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Run after batch `batch` of a prediction."""


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
        """Start afresh."""
        self.history = {}
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Append the epoch's logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


@explained
class CallbackList(Callback):
    """Several callbacks as one, called in the order given.

    Args:
        callbacks: A callback, or callbacks in a list (lists in it are flattened), or None.
        model: What to give to `set_model` of each, or None to do that later.
        params: What to give to `set_params` of each, or None to do that later.

    Raises:
        TypeError: Something in `callbacks` is not a `Callback`.

    Example:
        >>> from mirrored.training.callbacks import CallbackList, History
        >>> history = History()
        >>> CallbackList([history]).on_epoch_end(0, {"loss": 0.5})
        >>> history.history
        {'loss': [0.5]}
    """

    def __init__(
        self,
        callbacks: "Callback | Iterable[Any] | None" = None,
        *,
        model: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.callbacks: list[Callback] = _flatten(callbacks)
        if params is not None:
            self.set_params(params)
        if model is not None:
            self.set_model(model)

    def append(self, callback: Callback) -> None:
        """Add a callback, called after the others."""
        self.callbacks += _flatten(callback)

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two calls of the batch hooks.

        Args:
            kind: "train", "test" or "predict".
            steps: How many steps there are in all.
        """
        return min((each.steps_between(kind, steps) for each in self.callbacks), default=steps)

    def set_model(self, model: Any) -> None:
        """Give the model to every callback."""
        super().set_model(model)
        for callback in self.callbacks:
            callback.set_model(model)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Give the parameters to every callback."""
        super().set_params(params)
        for callback in self.callbacks:
            callback.set_params(params)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Call it on every callback."""
        _call_all(self.callbacks, "on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Call it on every callback."""
        _call_all(self.callbacks, "on_epoch_end", epoch, logs)


def _call_all(callbacks: list[Callback], hook: str, *args: Any) -> None:
    """Call a hook of all callbacks: one dict of logs for all, so that each sees what others add."""
    *place, logs = args
    logs = {} if logs is None else logs
    for callback in callbacks:
        getattr(callback, hook)(*place, logs)


def _on_all(hook: str) -> Callable[..., None]:
    """Return a method that calls a hook of all callbacks."""

    def once(self: CallbackList, logs: Logs | None = None) -> None:
        """Call it on every callback."""
        _call_all(self.callbacks, hook, logs)

    def at_batch(self: CallbackList, batch: int, logs: Logs | None = None) -> None:
        """Call it on every callback."""
        _call_all(self.callbacks, called, batch, logs)

    # Each callback passes the batches of training on to its hooks of the shorter names.
    called = hook.replace("on_batch", "on_train_batch")
    made = at_batch if "batch" in hook else once
    made.__name__, made.__qualname__ = hook, f"CallbackList.{hook}"
    return made


for _hook in vars(Callback):
    if _hook.startswith("on_") and _hook not in vars(CallbackList):
        setattr(CallbackList, _hook, _on_all(_hook))


def _flatten(callbacks: Any) -> list[Callback]:
    if callbacks is None:
        return []
    if isinstance(callbacks, Callback):
        return [callbacks]
    if isinstance(callbacks, list | tuple):
        return [callback for item in callbacks for callback in _flatten(item)]
    hint = " Did you forget the parentheses?" if isinstance(callbacks, type) else ""
    raise TypeError(
        "`callbacks` must hold instances of `mr.callbacks.Callback`. "
        f"Received: {callbacks!r} of type {type(callbacks).__name__}.{hint}"
    )
