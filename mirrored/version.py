"""The version of the library, as ``mr.version.VERSION``.

It is written down here alone: the package's metadata and ``mr.__version__`` are taken from it.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names

__all__ = [
    "VERSION",
]

VERSION = "0.1.0.dev0"

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.version")
