"""Goes on with a training that something ended: the callback that keeps a checkpoint of it.

It stands above the other callbacks, since checkpoints know models.
"""

import contextlib
import os

from mirrored import devices
from mirrored._files import agree, as_path, of_writer, writes_to
from mirrored._numbers import as_integer
from mirrored._types import PathLike
from mirrored.errors import WeightsFileError
from mirrored.ops import int64
from mirrored.training.callbacks import Callback, Logs
from mirrored.training.files.checkpoint import Checkpoint
from mirrored.variables import DeviceVariable


class BackupAndRestore(Callback):
    """Saves a checkpoint while a model is trained, and goes on from it where `fit` was ended.

    A `fit` that finds a checkpoint begins with its weights, optimizer and random streams, at the
    epoch that was running when it was saved. One that comes to its end deletes it. Where it was
    saved in the middle of an epoch, that epoch begins again, from the weights of that step.

    Args:
        backup_dir: The folder, for this callback alone; made with the first checkpoint.
        save_freq: "epoch", or after how many batches to save.
        double_checkpoint: Whether to keep the checkpoint before the last one too, and take it where
            the last one is spoilt.
        delete_checkpoint: Whether to delete the checkpoints when `fit` has come to its end.

    Raises:
        TypeError: `backup_dir` is no path.
        ValueError: `backup_dir` is empty, or `save_freq` is no number of batches.
        WeightsFileError: When training begins: the checkpoint is spoilt, or of another model.
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
        [2, 3, 4]
    """

    def __init__(
        self,
        backup_dir: PathLike,
        save_freq: int | str = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
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
        self._batches_seen_since_last_saving = 0
        self._last_batch_seen = -1
        self._checkpoint: Checkpoint | None = None
        self._epochs: DeviceVariable | None = None
        self._writes = True

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_checkpoint": None, "_epochs": None}

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at whether to save."""
        return self._steps_until(self.save_freq, kind, steps, BackupAndRestore)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Restore what was saved, if there is something."""
        with devices.device("CPU:0"):  # It is the program's, not a strategy's.
            self._epochs = DeviceVariable(0, False, "epochs", int64)
        self._checkpoint = Checkpoint(model=self.model, epochs=self._epochs)
        backups = [path for path in self._paths if os.path.exists(path)]
        there = of_writer(backups, "backups")
        self._writes = writes_to(self.backup_dir)
        try:
            self._checkpoint.restore(there[-1] if there else None)
        except WeightsFileError as error:
            if not (self.double_checkpoint and len(there) > 1):
                error.add_note(f"To begin at the first epoch, delete {self.backup_dir!r}.")
                raise
            self._checkpoint.restore(there[0])

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Note that the epoch is done, and save."""
        if self._epochs is not None:
            self._epochs.assign(epoch + 1)
        self._last_batch_seen = -1
        if self.save_freq == "epoch":
            self._save()

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Save where it is time."""
        if self.save_freq == "epoch":
            return
        self._batches_seen_since_last_saving += batch - self._last_batch_seen
        self._last_batch_seen = batch
        if self._batches_seen_since_last_saving >= int(self.save_freq):
            self._batches_seen_since_last_saving = 0
            self._save()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Delete what was saved."""
        if self.delete_checkpoint and self._writes:
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

    def _first_epoch(self, initial: int) -> int:
        done = 0 if self._epochs is None else int(self._epochs)
        return done or initial

    def _save(self) -> None:
        if self._checkpoint is None:
            return
        previous, latest = self._paths
        if self.double_checkpoint and self._writes and os.path.exists(latest):
            os.replace(latest, previous)
        self._checkpoint.write(latest)
