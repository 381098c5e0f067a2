"""Files that workers read have to be the same: all of them have one, with the same bytes."""

import zlib
from collections.abc import Iterable
from typing import Any

from mirrored._files import PathName

_PIECE = 1 << 22


def check_same_file(path: PathName | None, owners: Iterable[Any], action: str) -> None:
    """Raise where workers would read other files, before anything changes.

    All of them call it. It says nothing where what is read for belongs to this process alone.

    Args:
        path: The file; None: there is none to read.
        owners: What is read for: those of models and variables count that workers share.
        action: What is done then, for errors.

    Raises:
        WorkerError: One has no such file, or it has other bytes there.
    """
    for owner in owners:
        strategy = getattr(owner, "distribute_strategy", None) or getattr(owner, "strategy", None)
        if strategy is not None and strategy.is_shared:
            strategy.check_alike({"files": [_fingerprint(path)]}, action)
            return


def _fingerprint(path: PathName | None) -> str:
    if path is None:
        return "none to read"
    checksum = size = 0
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                checksum, size = zlib.crc32(piece, checksum), size + len(piece)
    except (OSError, TypeError, ValueError) as error:
        return f"none that can be read ({type(error).__name__})"
    return f"one of {size} bytes (check {checksum:08x})"
