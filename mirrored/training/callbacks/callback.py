"""Hooks that users hang into training, evaluation and prediction, with Keras' names."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from mirrored._arguments import Explained
from mirrored._reprs import made_with

Logs = dict[str, Any]

_BATCH_HOOKS = {
    "train": ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end"),
    "test": ("on_test_batch_begin", "on_test_batch_end"),
    "predict": ("on_predict_batch_begin", "on_predict_batch_end"),
}


def check_verbose(verbose: int | str) -> int:
    """Return what `verbose` means, as a number.

    Args:
        verbose: "auto", 0, 1 or 2.

    Raises:
        ValueError: It is something else.

    Example:
        >>> from mirrored.training.callbacks.callback import check_verbose
        >>> check_verbose("auto")
        1
    """
    if verbose not in ("auto", 0, 1, 2):
        raise ValueError(f'`verbose` must be "auto", 0, 1 or 2. Received: verbose={verbose!r}.')
    return 1 if verbose == "auto" else int(verbose)


class Callback(Explained):
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

    # Whether it is to be told of a loss that is not finite, which is an error else.
    ends_on_non_finite: ClassVar[bool] = False
    # Whether it saves and restores the `FitState` of a run, by its three methods for that.
    _backs_up: ClassVar[bool] = False
    # The attributes that change while a model is trained, which `state_dict` returns.
    _kept: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def __repr__(self) -> str:
        return made_with(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": None}  # It travels without the model that it looks at.

    def set_model(self, model: Any) -> None:
        """Take the model that is about to be trained."""
        self.model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take `verbose`, `epochs` and `steps`."""
        self.params = dict(params)

    def state_dict(self) -> dict[str, Any]:
        """Return what changes while a model is trained, for a backup; nothing unless overridden.

        Returns:
            Numbers, strings, arrays, None, and lists and dicts of these, by name.

        Example:
            >>> import mirrored as mr
            >>> mr.callbacks.ReduceLROnPlateau("loss").state_dict()
            {'best': None, 'cooldown_counter': 0, 'wait': 0}
        """
        return {name: getattr(self, name) for name in self._kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; `fit` calls it before `on_train_begin`, and again after it.

        Args:
            state: What `state_dict` returned.
        """
        kept = self._kept if type(self).state_dict is Callback.state_dict else state
        vars(self).update({name: state[name] for name in kept if name in state})

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two calls of the batch hooks; 1 where it has any.

        The hooks are called at its multiples, and behind the last step.

        Args:
            kind: "train", "test" or "predict".
            steps: How many steps there are in all.
        """
        return 1 if self._has_hooks(kind, Callback) else max(steps, 1)

    def _steps_until(self, every: int | str, kind: str, steps: int, base: type["Callback"]) -> int:
        """Return what `steps_between` does for a class that looks after every N-th training batch.

        Args:
            every: After how many; or "epoch": after none.
            kind: What `steps_between` is given.
            steps: What it is given.
            base: The class, whose subclasses may have hooks of their own.
        """
        if self._has_hooks(kind, base):
            return 1
        if kind != "train" or every == "epoch":
            return max(steps, 1)
        if self.params.get("steps") is None:  # Epochs may be of any length.
            return 1
        return math.gcd(int(every), steps)

    def _has_hooks(self, kind: str, base: type["Callback"]) -> bool:
        """Return whether there are hooks for batches of this kind other than those of a class."""
        cls, own = type(self), vars(self)
        for hook in _BATCH_HOOKS[kind]:
            if hook in own or getattr(cls, hook) is not getattr(base, hook):
                return True
        return False

    def _follow_fit(self, state: Any) -> None:
        """Take the `FitState` of a run that is about to begin."""

    def _resume_fit(self) -> None:
        """Continue where a backup says, now that hooks have begun what they begin."""

    def _back_up_fit(self) -> None:
        """Save where it is time, now that all callbacks have seen a batch or an epoch."""

    def _note_speed(self, examples: int, seconds: float) -> None:
        """Note how many examples an epoch trained on, and in what time, without validation."""

    def _epochs_done(self) -> None:
        """Have weights and what the optimizer keeps where they belong, when the epochs are over."""

    def _let_go(self) -> None:
        """Give back what is held when a run is over, however it ended; it may be called twice."""

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
