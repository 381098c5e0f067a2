"""Saves a model, or its weights, while it is trained."""

import errno
import os
import string
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from mirrored import _extras
from mirrored._files import alone_unless, as_path
from mirrored._logging import warn_caller
from mirrored._types import PathLike
from mirrored.training.callbacks.callback import Logs
from mirrored.training.callbacks.monitor_callback import MonitorCallback
from mirrored.training.files.tensor_file import HostCopies
from mirrored.training.progress import write_line

_ENDINGS = (".safetensors", ".weights.h5")
_NAMES = " or ".join(f"`{ending}`" for ending in _ENDINGS)


class ModelCheckpoint(MonitorCallback):
    """Saves the model after each epoch, every N batches, or only the best one.

    `keras.models.load_model` reads whole models, `Model.load_weights` weights. Each file is there
    wholly or not at all: where one cannot be written, as on a full disk, `fit` ends with the error,
    and the file before stays.

    Args:
        filepath: The file, whose name ends in ".keras"; that of weights alone in ".weights.h5", or
            in ".safetensors". `{epoch}`, counted from 1, `{batch}` and the names in the logs stand
            for their values, as in "{epoch:02d}-{val_loss:.2f}.keras". Its folder is made where it
            is missing.
        monitor: The name of the value that says which weights are the best.
        verbose: 1 prints what is done, 0 nothing.
        save_best_only: Whether to save only where the value is better than at all savings before.
        save_weights_only: Whether to save the weights alone.
        mode: "min" where less is better, "max" where more is; "auto": as the loss or the metric of
            this name says.
        save_freq: "epoch", or after how many batches to save; epochs need not be multiples of it.
        initial_value_threshold: What the first value has to be better than; None: nothing.
        asynchronous: Whether a thread writes the file while training goes on, from copies of the
            values. The next save and the end of `fit` wait for it. Its error ends `fit` at the
            next step. Models with layers that define `save_assets` are written at once.

    Raises:
        TypeError: `filepath` is no path.
        ImportError: The package h5py, which the format needs, is not installed.
        ValueError: The name is another one or has a field without a name, or `save_freq` is no
            number of batches; or, at the start of training, the mode is
            "auto", and nothing says which values of this name are better.
        KeyError: When it saves: the name has a field that the logs have not.
        OSError: When it saves: the file cannot be written.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save = mr.callbacks.ModelCheckpoint(
        ...         os.path.join(folder, "{epoch:02d}.safetensors"), save_weights_only=True
        ...     )
        ...     history = model.fit([[1.0]], [[2.0]], epochs=2, callbacks=[save], verbose=0)
        ...     sorted(os.listdir(folder))
        ['01.safetensors', '02.safetensors']
    """

    _kept = ("best", "_batches_seen_since_last_saving", "_last_batch_seen")

    def __init__(
        self,
        filepath: PathLike,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: int | str = "epoch",
        initial_value_threshold: float | None = None,
        *,
        asynchronous: bool = False,
    ) -> None:
        super().__init__(monitor, mode, initial_value_threshold)
        self.verbose = verbose
        self.filepath = as_path(filepath, "checkpoint")
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.save_freq = save_freq
        self.asynchronous = asynchronous
        self._copies = HostCopies()
        self._current_epoch = 0
        self._batches_seen_since_last_saving = 0
        self._last_batch_seen: int | None = None
        is_count = isinstance(save_freq, int) and not isinstance(save_freq, bool) and save_freq > 0
        if save_freq != "epoch" and not is_count:
            raise ValueError(
                f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer "
                "values of 1 or more."
            )
        _check_name(self.filepath, save_weights_only)
        if not self.filepath.endswith(".safetensors"):
            _extras.h5py()  # Before there is something to save.

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at whether to save."""
        return self._steps_until(self.save_freq, kind, steps, ModelCheckpoint)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Note the epoch."""
        self._current_epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Save where it is time."""
        if self.save_freq == "epoch":
            return
        last = self._last_batch_seen
        self._last_batch_seen = batch
        new_epoch = last is None or batch <= last
        self._batches_seen_since_last_saving += batch + 1 if new_epoch else batch - (last or 0)
        if self._batches_seen_since_last_saving >= int(self.save_freq):
            self._batches_seen_since_last_saving = 0
            self._save(self._current_epoch, batch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Save, where that is done after epochs."""
        self._set_monitor_op()
        if self.save_freq == "epoch":
            self._save(epoch, None, logs or {})

    def _save(self, epoch: int, batch: int | None, logs: Logs) -> None:
        """Save the weights, unless they are to be the best and are not."""
        path = self._path(epoch, batch, logs)
        best = self.best
        if self.save_best_only:
            best, is_to_be_saved = self._looked_at(epoch, logs, path)
            if not is_to_be_saved:
                return
        elif self.verbose > 0:
            write_line(f"\nEpoch {epoch + 1}: saving model to {path}")
        if os.path.isdir(path):
            raise IsADirectoryError(
                errno.EISDIR,
                "Please specify a non-directory filepath for ModelCheckpoint. Filepath used is an "
                "existing directory",
                path,
            )
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with self._in_thread() if self.asynchronous else nullcontext():
            if self.save_weights_only:
                self.model.save_weights(path, overwrite=True)
            else:
                self.model.save(path, overwrite=True)
        self.best = best  # Now that they are there.
        if self.verbose > 0 and not self.asynchronous:
            write_line(f"\nEpoch {epoch + 1}: finished saving model to {path}")

    @contextmanager
    def _in_thread(self) -> Iterator[None]:
        """Within this context a thread writes the file; if it fails, `best` is as it was."""
        undo = partial(setattr, self, "best", self.best)
        with alone_unless(self.model.distribute_strategy.is_shared), self._copies.in_thread(undo):
            yield

    def _looked_at(self, epoch: int, logs: Logs, path: str) -> tuple[Any, bool]:
        """Return the best value, that of now included, and whether to save."""
        self._set_monitor_op()
        current = logs.get(self.monitor)
        if current is None:
            warn_caller(f"Can save best model only with {self.monitor} available.")
            return self.best, True
        if np.ndim(current):
            warn_caller(
                "Can save best model only when `monitor` is a scalar value. Received: "
                f"{current}. Falling back to `save_best_only=False`."
            )
            return self.best, True
        before = "None" if self.best is None else f"{self.best:.5f}"
        if self._is_improvement(current, self.best):
            line = f"improved from {before} to {current:.5f}, saving model to {path}"
            result = current, True
        else:
            line = f"did not improve from {before}"
            result = self.best, False
        if self.verbose > 0:
            write_line(f"\nEpoch {epoch + 1}: {self.monitor} {line}")
        return result

    def _path(self, epoch: int, batch: int | None, logs: Logs) -> str:
        values = {"epoch": epoch + 1, **logs}
        if batch is not None:
            values.setdefault("batch", batch + 1)
        try:
            return self.filepath.format(**values)
        except KeyError as error:
            raise KeyError(
                f'Failed to format this callback filepath: "{self.filepath}". Reason: {error}'
            ) from None


def _check_name(path: str, weights_only: bool) -> None:
    """Raise ValueError where a file of this name could not be saved, before anything is trained."""
    received = f"Received: filepath={path}"
    if not weights_only and not path.endswith(".keras"):
        raise ValueError(
            f"The filepath provided must end in `.keras` (Keras model format). {received}"
        )
    if weights_only and not path.endswith(_ENDINGS):
        raise ValueError(
            "When using `save_weights_only=True` in `ModelCheckpoint`, the filepath provided must "
            f"end in {_NAMES}, the formats that weights are saved in. {received}"
        )
    try:
        fields = [(name, form) for _, name, form, _ in string.Formatter().parse(path)]
        for name, form in fields:
            if name in ("epoch", "batch"):
                format(1, form or "")
    except ValueError as error:
        raise ValueError(f"The filepath cannot be formatted: {error}. {received}") from None
    if any(name is not None and not name[:1].isidentifier() for name, _ in fields):
        raise ValueError(
            "Fields of the filepath must be `epoch`, `batch` or names of values in the logs. "
            f"{received}"
        )
