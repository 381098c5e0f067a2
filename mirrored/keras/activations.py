"""Keras' names of activations, as ``mr.keras.activations``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.activations",
    __name__,
    {
        "mirrored.layers.activations": "* -Activation",
    },
)
