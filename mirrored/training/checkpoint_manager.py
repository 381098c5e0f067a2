"""A series of checkpoints in one folder, of which the oldest ones go.

A long run saves often, and only its last states are of use.
"""

import os
from typing import Any

from mirrored._files import PathName
from mirrored._numbers import as_integer
from mirrored.training.checkpoint import Checkpoint
from mirrored.training.checkpoint_files import latest_in, saved_in


class CheckpointManager:
    """Saves a series of checkpoints in a folder, and deletes the oldest ones.

    Args:
        checkpoint: What is saved and restored.
        directory: The folder, made with the first checkpoint.
        max_to_keep: How many files to keep; None keeps all.
        checkpoint_name: What the files' names begin with.

    Raises:
        ValueError: `max_to_keep` is neither None nor an integer above 0.

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
        checkpoint_name: str = "ckpt",
    ) -> None:
        keep = None if max_to_keep is None else as_integer(max_to_keep)
        if max_to_keep is not None and (keep is None or keep < 1):
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep!r}."
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._keep = keep
        self._name = checkpoint_name

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the files of this series that are there, the oldest first."""
        return [each.path for each in saved_in(self._directory, self._name)]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the file of this series that was saved last; None if there is none."""
        return latest_in(self._directory, self._name)

    def save(self, checkpoint_number: Any = None) -> str:
        """Write a checkpoint, delete those that are too many, and return its path.

        Args:
            checkpoint_number: The number in its name, an integer or a variable; None counts.

        Raises:
            OSError: As for `Checkpoint.save`, and so for its other errors. Nothing is deleted.
        """
        prefix = os.path.join(self._directory, self._name)
        number = None if checkpoint_number is None else int(checkpoint_number)
        path = self._checkpoint.save(prefix, number=number)
        if self._keep is not None:
            for old in self.checkpoints[: -self._keep]:
                os.unlink(old)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, if there is one, and return its path; errors as there."""
        latest = self.latest_checkpoint
        self._checkpoint.restore(latest)
        return latest
