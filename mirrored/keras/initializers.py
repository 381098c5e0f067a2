"""Keras' names of initializers, as ``mr.keras.initializers``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.initializers",
    __name__,
    {
        "mirrored.layers.initializers": """
            Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity
            IdentityInitializer=Identity Initializer LecunNormal LecunUniform Ones
            Orthogonal OrthogonalInitializer=Orthogonal RandomNormal RandomUniform
            TruncatedNormal VarianceScaling Zeros constant=Constant deserialize get
            glorot_normal=GlorotNormal glorot_uniform=GlorotUniform he_normal=HeNormal
            he_uniform=HeUniform identity=Identity lecun_normal=LecunNormal
            lecun_uniform=LecunUniform ones=Ones orthogonal=Orthogonal
            random_normal=RandomNormal random_uniform=RandomUniform serialize
            truncated_normal=TruncatedNormal variance_scaling=VarianceScaling
            zeros=Zeros
        """,
    },
)
