"""Keras' names of optimizers, as ``mr.keras.optimizers``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.optimizers",
    __name__,
    {
        "mirrored.keras.optimizers": "schedules",
        "mirrored.optim": "* -schedules",
    },
)
