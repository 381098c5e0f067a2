"""Keras' names of regularizers, as ``mr.keras.regularizers``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.regularizers",
    __name__,
    {
        "mirrored.layers.regularizers": """
            L1 L1L2 L2 OrthogonalRegularizer Regularizer deserialize get l1=L1
            l1_l2=L1L2 l2=L2 orthogonal_regularizer=OrthogonalRegularizer serialize
        """,
    },
)
