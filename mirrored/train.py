"""The public names of checkpoints and of examples in TFRecord files, as ``mr.train``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.training.checkpoints.checkpoint import Checkpoint as Checkpoint
from mirrored.training.checkpoints.folder import latest_checkpoint as latest_checkpoint
from mirrored.training.checkpoints.manager import CheckpointManager as CheckpointManager

if _typing.TYPE_CHECKING:
    from mirrored.data.examples import BytesList as BytesList
    from mirrored.data.examples import Example as Example
    from mirrored.data.examples import Feature as Feature
    from mirrored.data.examples import Features as Features
    from mirrored.data.examples import FloatList as FloatList
    from mirrored.data.examples import Int64List as Int64List

__all__ = [
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "Example",
    "Feature",
    "Features",
    "FloatList",
    "Int64List",
    "latest_checkpoint",
]

_LATE = {"mirrored.data.examples": "BytesList Example Feature Features FloatList Int64List"}
_public_module("tf.train", __name__, _LATE)
