"""The public names of capsules of DLPack, as ``mr.experimental.dlpack``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.experimental.dlpack",
    __name__,
    {
        "mirrored.ops.exchange": "from_dlpack to_dlpack",
    },
)
