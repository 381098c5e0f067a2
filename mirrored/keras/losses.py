"""Keras' names of losses, as ``mr.keras.losses``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.losses",
    __name__,
    {
        "mirrored.training.losses": "* -as_loss",
    },
)
