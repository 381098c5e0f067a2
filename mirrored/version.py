"""The version of the library, as ``mr.version.VERSION``.

It is written down here alone: the package's metadata and ``mr.__version__`` are taken from it.
"""

from mirrored._absent import public_module as _public_module

VERSION = "0.1.0"
_KERAS = "3.15.0"  # The version of Keras whose names `keras` has.

_public_module("tf.version", __name__, constants=("VERSION",))
