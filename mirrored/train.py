"""The public names of checkpoints, as ``mr.train``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.checkpoints.checkpoint import Checkpoint as Checkpoint
from mirrored.training.checkpoints.folder import latest_checkpoint as latest_checkpoint
from mirrored.training.checkpoints.manager import CheckpointManager as CheckpointManager

_public_module("tf.train", __name__)
