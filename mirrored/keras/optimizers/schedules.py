"""Keras' names of learning rates that change, as ``mr.keras.optimizers.schedules``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.optimizers.schedules",
    __name__,
    {
        "mirrored.optim.schedules": "*",
    },
)
