"""Keras' names of metrics, as ``mr.keras.metrics``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.metrics",
    __name__,
    {
        "mirrored.training.metrics": "* -AUTOMATIC -kind_of -resolve",
    },
)
