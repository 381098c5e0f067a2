"""A series of checkpoints in one folder, of which the oldest ones go.

A long run saves often, and only its last states are of use.
"""

import contextlib
import os
from typing import Any

from mirrored._absent import absent_members
from mirrored._arguments import explained
from mirrored._files import PathName, as_path, remove_leftovers, writes_to
from mirrored._logging import logger
from mirrored._numbers import as_integer
from mirrored.training.checkpoints.checkpoint import Checkpoint
from mirrored.training.checkpoints.folder import is_of_series, latest_in, saved_in


@explained
@absent_members("tf.train.CheckpointManager")
class CheckpointManager:
    """Saves a series of checkpoints in a folder, and deletes the oldest ones.

    Args:
        checkpoint: What is saved and restored.
        directory: The folder, made with the first checkpoint.
        max_to_keep: How many files to keep; None keeps all.
        checkpoint_name: What the files' names begin with.

    Raises:
        TypeError: `checkpoint` is no Checkpoint, or `directory` no path.
        ValueError: `max_to_keep` is neither None nor an integer above 0, or `checkpoint_name` is
            no file's name.

    Example:
        >>> import os, tempfile
        >>> import mirrored as mr
        >>> checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     manager = mr.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        ...     for _ in range(3):
        ...         _ = manager.save()
        ...     [os.path.basename(path) for path in manager.checkpoints]
        ['ckpt-2', 'ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: PathName,
        max_to_keep: int | None,
        *,
        checkpoint_name: str = "ckpt",
    ) -> None:
        value: Any = checkpoint
        if not isinstance(value, Checkpoint):
            raise TypeError(
                "`checkpoint` is a mr.train.Checkpoint of what is saved, as in "
                f"mr.train.Checkpoint(model=model). Received: {value!r}."
            )
        keep = None if max_to_keep is None else as_integer(max_to_keep)
        if max_to_keep is not None and (keep is None or keep < 1):
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep!r}."
            )
        self._checkpoint = checkpoint
        name: Any = checkpoint_name
        if not isinstance(name, str) or not name or os.path.basename(name) != name or "\0" in name:
            raise ValueError(
                "`checkpoint_name` is what the files' names begin with, without folders. Received: "
                f"{checkpoint_name!r}. Put folders into `directory`."
            )
        self._directory = as_path(directory, "folder of checkpoints")
        self._keep = keep
        self._name = checkpoint_name

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the files of this series that are there, the oldest first."""
        return [checkpoint.path for checkpoint in saved_in(self._directory, self._name)]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the file of this series that was saved last; None if there is none."""
        return latest_in(self._directory, self._name)

    def save(self, checkpoint_number: Any = None) -> str:
        """Write a checkpoint, delete those that are too many, and return its path.

        What killed programs have left of this series' temporary files is deleted too. Where
        something cannot be deleted, a warning tells: the checkpoint is there.

        Args:
            checkpoint_number: The number in its name, an integer or a variable; None counts.

        Raises:
            OSError: As for `Checkpoint.save`, and so for its other errors. Nothing is deleted.
        """
        prefix = os.path.join(self._directory, self._name)
        path = self._checkpoint.save(prefix, number=checkpoint_number)
        own = writes_to(self._directory)
        try:
            if own:
                self._delete_old()
        except OSError as error:
            logger.warning("The checkpoint %r is written, but old files stay: %s", path, error)
        return path

    def _delete_old(self) -> None:
        if self._keep is not None:
            for old in self.checkpoints[: -self._keep]:
                with contextlib.suppress(FileNotFoundError):  # Another manager was here.
                    os.unlink(old)
        remove_leftovers(self._directory, lambda name: is_of_series(name, self._name))

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, if there is one, and return its path; errors as there."""
        latest = self.latest_checkpoint
        self._checkpoint.restore(latest)
        return latest
