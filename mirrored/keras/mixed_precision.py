"""Keras' names for the dtypes that layers compute in, as ``mr.keras.mixed_precision``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.mixed_precision",
    __name__,
    {
        "mirrored.layers.policy": """
            DTypePolicy Policy=DTypePolicy dtype_policy global_policy=dtype_policy
            set_dtype_policy set_global_policy=set_dtype_policy
        """,
        "mirrored.optim": "LossScaleOptimizer",
    },
)
