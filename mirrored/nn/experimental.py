"""The names that TensorFlow keeps under ``tf.nn.experimental``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.nn.experimental",
    __name__,
    {
        "mirrored.ops": "general_dropout stateless_dropout",
    },
)
