"""Keras' names of constraints, as ``mr.keras.constraints``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.constraints",
    __name__,
    {
        "mirrored.layers.constraints": """
            Constraint MaxNorm MinMaxNorm NonNeg UnitNorm deserialize get
            max_norm=MaxNorm min_max_norm=MinMaxNorm non_neg=NonNeg serialize
            unit_norm=UnitNorm
        """,
    },
)
