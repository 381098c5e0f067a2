"""Keras' names of layers, as ``mr.keras.layers``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.layers",
    __name__,
    {
        "mirrored.layers": """
            * -SymbolicTensor -activations -constraints -initializers -regularizers -reset_names
        """,
        "mirrored.layers.configurations": "deserialize serialize",
    },
)
