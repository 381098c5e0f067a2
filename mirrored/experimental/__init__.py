"""The names that TensorFlow keeps under ``tf.experimental``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.experimental",
    __name__,
    {
        "mirrored.data.optional": "Optional",
        "mirrored.experimental": "dlpack numpy",
    },
)
