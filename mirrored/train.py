"""The public names of checkpoints and of examples in TFRecord files, as ``mr.train``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.train",
    __name__,
    {
        "mirrored.data.examples": "BytesList Example Feature Features FloatList Int64List",
        "mirrored.training.files.checkpoint": "Checkpoint CheckpointManager latest_checkpoint",
        "mirrored.training.preemption": "PreemptionHandler",
    },
)
