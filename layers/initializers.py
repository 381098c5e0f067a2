"""Initializers: the starting values of weights, by the names and formulas of Keras.

An initializer is a function from a shape and a dtype to a tensor; the random ones take a seed.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.initializers",
    __name__,
    {
        "mirrored.layers.initializer_registry": "Filling deserialize get serialize",
        "mirrored.layers.starting_values": """
            Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity Initializer
            LecunNormal LecunUniform Ones Orthogonal RandomNormal RandomUniform
            TruncatedNormal VarianceScaling Zeros
        """,
    },
)
