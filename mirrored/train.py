"""The public names of checkpoints, as ``mr.train``.

An alias module without logic of its own.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.training.checkpoint import Checkpoint as Checkpoint
from mirrored.training.checkpoint_files import latest_checkpoint as latest_checkpoint
from mirrored.training.checkpoint_manager import CheckpointManager as CheckpointManager

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "latest_checkpoint",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.train")
