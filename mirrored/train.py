"""The public names of checkpoints, as ``mr.train``.

An alias module without logic of its own.
"""

from mirrored.training.checkpoint import Checkpoint as Checkpoint
from mirrored.training.checkpoint_files import latest_checkpoint as latest_checkpoint
from mirrored.training.checkpoint_manager import CheckpointManager as CheckpointManager
