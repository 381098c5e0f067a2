"""Keras' names of constraints, as ``mr.keras.constraints``.

Its names are defined in other modules.
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
