"""The names that TensorFlow keeps under ``tf.random.experimental``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.random.experimental",
    __name__,
    {
        "mirrored.ops.stateless_random": """
            Algorithm stateless_fold_in stateless_shuffle stateless_split
        """,
        "mirrored.variables.generator": """
            Generator create_rng_state get_global_generator set_global_generator
        """,
    },
)
