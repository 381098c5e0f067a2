"""The type that TensorFlow keeps under ``tf.types.experimental``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module("tf.types.experimental", __name__, {"mirrored._types": "TensorLike"})
