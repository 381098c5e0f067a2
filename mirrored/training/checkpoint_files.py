"""Which checkpoints are in a folder, and in what order they were saved.

It is read from the files themselves, so no list of them can be out of date, nor a clock wrong.
"""

import os
import re
from typing import NamedTuple

from mirrored._files import PathName
from mirrored._logging import logger
from mirrored.errors import WeightsFileError
from mirrored.training.weights_file import read_checkpoint_metadata

SEQUENCE = "sequence"  # In the metadata: how many were saved in the folder before, and one.
_NUMBERED = re.compile(r"(?P<prefix>.+)-(?P<number>\d+)", re.DOTALL)


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
    """Return the checkpoints in a folder in the order in which they were saved.

    Args:
        directory: The folder, which need not be there.
        prefix: What their names are before the hyphen and the number; None takes all.

    Example:
        >>> from mirrored.training.checkpoint_files import saved_in
        >>> saved_in("no such folder")
        []
    """
    folder = os.fspath(directory)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        parts = _NUMBERED.fullmatch(name)
        if parts is None or prefix not in (None, parts["prefix"]):
            continue
        path = os.path.join(folder, name)
        sequence = _sequence(path)
        if sequence is not None:
            found.append(Saved(sequence, int(parts["number"]), path))
    return sorted(found)


def latest_checkpoint(checkpoint_dir: PathName) -> str | None:
    """Return the path of the checkpoint in a folder that was saved last; None if there is none.

    Args:
        checkpoint_dir: The folder, which need not be there. `Checkpoint.save` wrote the files;
            those of `Checkpoint.write` do not count.

    Example:
        >>> import tempfile
        >>> import mirrored as mr
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        ...     path = checkpoint.save(folder + "/ckpt")
        ...     mr.train.latest_checkpoint(folder) == path
        True
    """
    found = saved_in(checkpoint_dir)
    return found[-1].path if found else None


def _sequence(path: str) -> int | None:
    """Return a checkpoint's place in its folder; None for another file and for one that is gone."""
    try:
        text = read_checkpoint_metadata(path).get(SEQUENCE)
    except FileNotFoundError:  # Another process deleted it.
        return None
    except WeightsFileError as error:
        logger.warning("A file in a folder of checkpoints is left out. %s", error)
        return None
    return None if text is None else int(text)
