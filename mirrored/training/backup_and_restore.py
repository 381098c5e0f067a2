"""The callback that saves the state of a running `fit`, and continues from it in another process.

It is above the other callbacks, since checkpoints know models.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mirrored._files import agree, as_path, of_writer, settle, trains_together, writer_of, writes
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored._types import PathLike
from mirrored.errors import WeightsFileError
from mirrored.training.callbacks import Callback, Logs
from mirrored.training.files.checkpoint import Checkpoint
from mirrored.training.files.tensor_file import CHECKPOINT, open_tensors, read_table
from mirrored.training.files.tensor_tree import check_same_file, damaged
from mirrored.training.fit_state import FitState
from mirrored.training.preemption import PreemptionHandler

_OF_RUN = ("_checkpoint", "_fit", "_backup", "_preemption")  # Attributes that do not travel.
_FIT = "fit"  # In the metadata: the state of the run; and the names of arrays in it.


class BackupAndRestore(Callback):
    """Saves a checkpoint while a model is trained, and continues from it where `fit` was ended.

    A `fit` that finds a checkpoint continues after the step at which it was saved, also in the
    middle of an epoch, and returns what an uninterrupted run returns: the same weights, history and
    files, bit for bit on the same number of replicas. The checkpoint has the model, the optimizer,
    the metrics of the running epoch, the position in the data, the states of the callbacks, and
    the global random streams of mirrored, Python and NumPy. A `fit` that comes to its end deletes
    it.

    On SIGTERM and SIGUSR1 the running step is finished and saved, also between two multiples of
    `save_freq`; during validation, the epoch is. Then the program ends as it would have by the
    signal. A second signal ends it at once.

    Callbacks of your own save what their `state_dict` returns. `on_train_begin` and the running
    epoch's `on_epoch_begin` are called again; then all state is restored. Batches of a generator
    are read again and dropped. A `PyDataset` is notified of the epochs before, and makes no batch
    again.

    Args:
        backup_dir: The folder, for this callback alone; made with the first checkpoint.
        save_freq: "epoch", or after how many batches to save.
        double_checkpoint: Whether to keep the checkpoint before the last one too, and take it where
            the last one is spoilt.
        delete_checkpoint: Whether to delete the checkpoints when `fit` has come to its end.
        asynchronous: Whether a thread writes the checkpoint while training goes on, from copies of
            the values. The next save and the end of `fit` wait for it, and its error ends `fit` at
            the next step.

    Raises:
        TypeError: `backup_dir` is no path.
        ValueError: `backup_dir` is empty, or `save_freq` is no number of batches.
        WeightsFileError: When training begins: the checkpoint is spoilt, or of another model,
            optimizer or dataset.
        OSError: When it saves: the file cannot be written; the one before is there.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> def fail(epoch, logs):
        ...     if epoch == 2:
        ...         raise OSError("the machine stopped")
        >>> fails = mr.callbacks.LambdaCallback(on_epoch_begin=fail)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     backup = mr.callbacks.BackupAndRestore(os.path.join(folder, "backup"))
        ...     options = {"epochs": 5, "verbose": 0}
        ...     try:
        ...         _ = model.fit([[1.0]], [[2.0]], callbacks=[backup, fails], **options)
        ...     except OSError:
        ...         model.fit([[1.0]], [[2.0]], callbacks=[backup], **options).epoch
        [0, 1, 2, 3, 4]
    """

    _backs_up = True
    _kept = ("_batches_seen_since_last_saving", "_last_batch_seen")

    def __init__(
        self,
        backup_dir: PathLike,
        save_freq: int | str = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
        *,
        asynchronous: bool = False,
    ) -> None:
        super().__init__()
        self.backup_dir = as_path(backup_dir, "folder of backups")
        if not self.backup_dir:
            raise ValueError("Empty `backup_dir` argument passed")
        count = None if isinstance(save_freq, bool) else as_integer(save_freq)
        if save_freq != "epoch" and (count is None or count < 1):
            raise ValueError(
                f"Invalid value for argument `save_freq`. Received: save_freq={save_freq}. "
                "Expected either 'epoch' or an integer value of 1 or more."
            )
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self.asynchronous = asynchronous
        self._batches_seen_since_last_saving = 0
        self._last_batch_seen = -1
        self._is_due = False
        self._writes: Callable[[], bool] = writes
        self._checkpoint = Checkpoint()
        self._fit: FitState | None = None
        self._preemption: PreemptionHandler | None = None
        self._backup: _Backup | None = None  # That the run continues.

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), **dict.fromkeys(_OF_RUN)}

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at whether to save."""
        interval = self._steps_until(self.save_freq, kind, steps, BackupAndRestore)
        if kind == "train" and trains_together():  # All look whether one is to end.
            return math.gcd(interval, max(steps // 100, 1))
        return interval

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Check that it is `fit` that begins.

        Raises:
            RuntimeError: It is a custom loop, whose position only the loop knows.
        """
        if self._fit is None:
            raise RuntimeError(
                "`BackupAndRestore` saves the state of a running `fit`. Received: a call of "
                "`on_train_begin` outside `fit`. In a custom loop, save a `mr.train.Checkpoint` "
                "of the model, the optimizer and the iterator over the dataset."
            )

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Note that the epoch is done, and whether to save."""
        self._last_batch_seen = -1
        self._is_due = self._is_due or self.save_freq == "epoch"

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Note whether to save."""
        if self.save_freq == "epoch":
            return
        self._batches_seen_since_last_saving += batch - self._last_batch_seen
        self._last_batch_seen = batch
        if self._batches_seen_since_last_saving >= int(self.save_freq):
            self._batches_seen_since_last_saving = 0
            self._is_due = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Delete what was saved."""
        settle()
        if self.delete_checkpoint and self._writes():
            for path in self._paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            with contextlib.suppress(OSError):  # It is not there, or has files of others.
                os.rmdir(self.backup_dir)
        agree("the end of a fit with backups")

    @property
    def _paths(self) -> list[str]:
        """The file before the last one, and the last one."""
        return [os.path.join(self.backup_dir, name) for name in ("previous", "latest")]

    def _follow_fit(self, state: FitState) -> None:
        """Restore the latest backup, if there is one."""
        self._fit, self._is_due = state, False
        self._preemption = PreemptionHandler().__enter__()
        state.end_where(self._is_ending)
        self._batches_seen_since_last_saving, self._last_batch_seen = 0, -1
        self._checkpoint = Checkpoint(model=self.model, metrics=state.metrics)
        backups = [path for path in self._paths if os.path.exists(path)]
        there = of_writer(backups, "backups")
        self._writes = writer_of(self.backup_dir)
        if not there:
            return
        try:
            self._backup = self._restored(there[-1], state)
        except WeightsFileError as error:
            if not (self.double_checkpoint and len(there) > 1):
                error.add_note(f"To begin at the first epoch, delete {self.backup_dir!r}.")
                raise
            self._backup = self._restored(there[0], state)
        with _understood(self._backup.path):
            state.begin(self._backup.state, self._backup.arrays)

    def _restored(self, path: str, state: FitState) -> "_Backup":
        """Restore the model, and return the rest, which is checked first."""
        if trains_together():
            check_same_file(path, self._checkpoint.held().values(), "restoring a backup")
        with open_tensors(path, CHECKPOINT) as file:
            text = file.texts.get(_FIT)
            if text is None:
                raise WeightsFileError(
                    f"{file.noun} is no backup. Received: a checkpoint without the state of a fit. "
                    "Restore it with `mr.train.Checkpoint.restore`."
                )
            saved = read_table(file.noun, text, "state of a fit")
            with _understood(path):
                state.check(file.noun, saved)
                names = [f"{_FIT}/{i}" for i in range(min(saved["arrays"], len(file.specs)))]
            arrays = [array for _, array in file.read(names)]
        self._checkpoint.restore(path).expect_partial()
        return _Backup(path, saved, arrays)

    def _resume_fit(self) -> None:
        backup, self._backup = self._backup, None
        if backup is not None and self._fit is not None:
            # What hooks have changed since; the rest of the file was read.
            self._checkpoint.restore(backup.path).expect_partial()
            with _understood(backup.path):
                self._fit.load(backup.state, backup.arrays)

    def _is_ending(self) -> bool:
        return self._preemption is not None and self._preemption.received

    def _back_up_fit(self) -> None:
        if self._fit is None or self._preemption is None:
            return
        is_ending = self._preemption.requested
        if self._is_due or is_ending:
            self._write(self._fit)
        if is_ending:
            settle()
            logger.warning("Saved %r after a signal to end the program.", self._paths[-1])
            self._preemption.end()

    def _write(self, fit: FitState) -> None:
        self._is_due = False
        state, arrays = fit.state()
        text = json.dumps({**state, "arrays": len(arrays)})
        settle()
        previous, latest = self._paths
        if self.double_checkpoint and self._writes() and os.path.exists(latest):
            os.replace(latest, previous)
        named = {f"{_FIT}/{i}": array for i, array in enumerate(arrays)}
        self._checkpoint._write(latest, {_FIT: text}, self.asynchronous, arrays=named)

    def _let_go(self) -> None:
        if self._preemption is not None:
            self._preemption.__exit__()
        self._fit = self._backup = self._preemption = None
        self._checkpoint = Checkpoint()


@contextlib.contextmanager
def _understood(path: str) -> Iterator[None]:
    """Within this context, a state that a run cannot have raises WeightsFileError."""
    try:
        yield
    except WeightsFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(f"The file {path!r}", f"of another run or corrupt ({error!r:.99})") from error


class _Backup(NamedTuple):
    """What a file has in addition to the model.

    Attributes:
        path: The file.
        state: What `FitState.state` returned.
        arrays: The arrays in it.
    """

    path: str
    state: dict[str, Any]
    arrays: list[np.ndarray]
