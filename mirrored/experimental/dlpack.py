"""The public names of capsules of DLPack, as ``mr.experimental.dlpack``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.ops.exchange import from_dlpack as from_dlpack
from mirrored.ops.exchange import to_dlpack as to_dlpack

_public_module("tf.experimental.dlpack", __name__)
