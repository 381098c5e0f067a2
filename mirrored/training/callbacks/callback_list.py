"""Several callbacks as one.

All callbacks of one event are given the same logs, so that one can add to what a later one sees.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.callbacks.history import History


class CallbackList(Callback):
    """Several callbacks as one, called in the order given.

    Args:
        callbacks: A callback, or callbacks in a list (lists in it are flattened), or None.
        add_history: Whether to add a `History` where there is none.
        add_progbar: Whether to add a `ProgbarLogger` where there is none.
        model: What to give to `set_model` of each, or None to do that later.
        params: What to give to `set_params` of each, as in `epochs=2`; none to do that later.

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
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        super().__init__()
        self.callbacks: list[Callback] = _flatten(callbacks)
        # Behind the others, so that they have what those add to the logs.
        if add_history and self.history is None:
            self.callbacks.append(History())
        if add_progbar:
            # What draws is imported when something is to be drawn: importing us stays fast.
            from mirrored.training.callbacks.progbar_logger import ProgbarLogger

            if not any(isinstance(callback, ProgbarLogger) for callback in self.callbacks):
                self.callbacks.append(ProgbarLogger())
        if params:
            self.set_params(params)
        if model is not None:
            self.set_model(model)

    @property
    def history(self) -> History | None:
        """The last `History` there is; None: there is none."""
        histories = [callback for callback in self.callbacks if isinstance(callback, History)]
        return histories[-1] if histories else None

    @property
    def look_at_losses(self) -> bool:
        """Whether there is a callback that ends training where a loss is not finite."""
        return any(callback.ends_on_non_finite for callback in self.callbacks)

    def append(self, callback: Callback) -> None:
        """Add a callback, called after the others."""
        self.callbacks += _flatten(callback)

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two calls of the batch hooks.

        Args:
            kind: "train", "test" or "predict".
            steps: How many steps there are in all.
        """
        shared = 0
        for callback in self.callbacks:
            interval = callback.steps_between(kind, steps)
            if interval < steps:
                shared = math.gcd(shared, interval)
        return shared or steps

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
        _call_all(self.callbacks, "on_epoch_begin", logs, epoch)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Call it on every callback."""
        _call_all(self.callbacks, "on_epoch_end", logs, epoch)


def _call_all(callbacks: list[Callback], hook: str, logs: Logs | None, *place: int) -> None:
    """Call a hook of all callbacks: one dict of logs for all, so that each sees what others add."""
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
        _call_all(self.callbacks, called, logs, batch)

    # Each callback passes the batches of training on to its hooks of the shorter names.
    called = hook.replace("on_batch", "on_train_batch")
    method = at_batch if "batch" in hook else once
    method.__name__, method.__qualname__ = hook, f"CallbackList.{hook}"
    return method


def _passed_on(name: str) -> Callable[..., None]:
    """Return a method that calls one of all callbacks with its arguments."""

    def method(self: CallbackList, *arguments: Any) -> None:
        """Call it on every callback."""
        for callback in self.callbacks:
            getattr(callback, name)(*arguments)

    method.__name__, method.__qualname__ = name, f"CallbackList.{name}"
    return method


for _hook in vars(Callback):
    if _hook.startswith("on_") and _hook not in vars(CallbackList):
        setattr(CallbackList, _hook, _on_all(_hook))
for _hook in ("_note_speed", "_epochs_done", "_let_go"):
    setattr(CallbackList, _hook, _passed_on(_hook))


def _flatten(callbacks: Any) -> list[Callback]:
    if callbacks is None:
        return []
    if type(callbacks) is CallbackList:  # Keras' order: its history and bar are then `fit`'s.
        return list(callbacks.callbacks)
    if isinstance(callbacks, Callback):
        return [callbacks]
    if isinstance(callbacks, list | tuple):
        return [callback for item in callbacks for callback in _flatten(item)]
    hint = " Did you forget the parentheses?" if isinstance(callbacks, type) else ""
    raise TypeError(
        "`callbacks` must hold instances of `mr.callbacks.Callback`. "
        f"Received: {callbacks!r} of type {type(callbacks).__name__}.{hint}"
    )
