"""The checkpoints in a folder: which files they are, and in which order they were saved.

The order is in the files themselves: numbers and clocks may go back.
"""

import os
import re
from typing import NamedTuple

from mirrored._arguments import explained
from mirrored._files import PathName, as_path
from mirrored._logging import logger
from mirrored.errors import WeightsFileError
from mirrored.training.files.tensor_file import CHECKPOINT, open_tensors

SEQUENCE = "sequence"  # In the metadata: how many were saved in the folder before, and one.
_SEQUENCE = re.compile(r"[0-9]{1,18}")
_NUMBERED = re.compile(r"(?P<prefix>.+)-(?P<number>[0-9]+)", re.DOTALL)


class Saved(NamedTuple):
    """A file that `Checkpoint.save` wrote; later ones are greater.

    Attributes:
        sequence: Its place among those of its folder.
        number: The number in its name.
        path: Its path.
    """

    sequence: int
    number: int
    path: str


def saved_in(directory: PathName, prefix: str | None = None) -> list[Saved]:
    """Return the checkpoints in a folder in the order in which they were saved."""
    return _checkpoints_in(directory, prefix)[0]


def latest_in(directory: PathName, prefix: str | None = None) -> str | None:
    """Return the path of the one that was saved last, and warn of files that cannot be read.

    Returns:
        The path; None if there is none.
    """
    checkpoints, errors = _checkpoints_in(directory, prefix)
    for error in errors:
        logger.warning("A file in a folder of checkpoints is left out. %s", error)
    return checkpoints[-1].path if checkpoints else None


@explained
def latest_checkpoint(checkpoint_dir: PathName) -> str | None:
    """Return the path of the checkpoint in a folder that was saved last; None if there is none.

    Args:
        checkpoint_dir: The folder, which need not be there. `Checkpoint.save` wrote the files;
            those of `Checkpoint.write` do not count.

    Raises:
        TypeError: `checkpoint_dir` is no path.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        ...     path = checkpoint.save(folder + "/ckpt")
        ...     mr.train.latest_checkpoint(folder) == path
        True
    """
    return latest_in(checkpoint_dir)


def is_of_series(name: str, prefix: str | None) -> bool:
    """Return whether a file's name is one that `Checkpoint.save` gives."""
    parts = _NUMBERED.fullmatch(name)
    return parts is not None and prefix in (None, parts["prefix"])


def _checkpoints_in(directory: PathName, prefix: str | None) -> tuple[list[Saved], list[Exception]]:
    """Return the checkpoints in their order, and why other files with such names are none."""
    folder = as_path(directory, "folder of checkpoints")
    try:
        names = sorted(os.listdir(folder or os.curdir))
    except FileNotFoundError:
        return [], []
    checkpoints: list[Saved] = []
    errors: list[Exception] = []
    for name in names:
        path = os.path.join(folder, name)
        if not is_of_series(name, prefix) or not os.path.isfile(path):
            continue
        try:
            sequence = _sequence_of(path)
        except FileNotFoundError:  # Another manager has deleted it meanwhile.
            continue
        except (OSError, WeightsFileError) as error:
            errors.append(error)
            continue
        if sequence is not None:  # Otherwise `Checkpoint.write` wrote it.
            checkpoints.append(Saved(sequence, int(name.rpartition("-")[2]), path))
    return sorted(checkpoints), errors


def _sequence_of(path: str) -> int | None:
    """Return which of its folder's checkpoints a file is, after checking its header alone."""
    with open_tensors(path, CHECKPOINT) as file:
        text = file.texts.get(SEQUENCE)
    if text is not None and not _SEQUENCE.fullmatch(text):
        raise WeightsFileError(
            f"The checkpoint {path!r} is corrupt: its place among others is a number. Received: "
            f"{text!r:.100}. Restore the file from another copy."
        )
    return None if text is None else int(text)
