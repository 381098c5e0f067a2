"""Keras' random numbers by seeds of their own, as ``mr.keras.random``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.random",
    __name__,
    {
        "mirrored.keras_functions.random": """
            categorical dropout normal randint truncated_normal uniform
        """,
        "mirrored.variables.generator": "SeedGenerator",
    },
)
